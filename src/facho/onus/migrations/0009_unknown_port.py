from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('onus', '0008_duplicate_mac'),
    ]

    operations = [
        migrations.AddField(
            model_name='ponport',
            name='is_known',
            field=models.BooleanField(db_default=True, default=True, verbose_name='known'),
        ),
    ]
