from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0001_squashed_0010_discovered_at'),
    ]

    operations = [
        migrations.AddField(
            model_name='olt',
            name='trap_addresses',
            field=models.CharField(blank=True, db_default='', default='', help_text='Addresses that its traps come from besides its own, separated by commas.', max_length=200, verbose_name='further trap addresses'),
        ),
    ]
