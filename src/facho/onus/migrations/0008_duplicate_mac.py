from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('onus', '0007_missed_at'),
    ]

    operations = [
        migrations.AlterField(
            model_name='onuevent',
            name='kind',
            field=models.CharField(choices=[('new', 'new'), ('moved', 'moved'), ('gone', 'gone'), ('returned', 'returned'), ('duplicate_serial', 'duplicate serial'), ('duplicate_mac', 'duplicate hardware address'), ('calm', 'calm again'), ('up', 'went up'), ('down', 'went down'), ('flapping', 'flapping'), ('power_drop', 'light dropped'), ('power_rise', 'light rose'), ('description_changed', 'description changed')], max_length=20, verbose_name='event'),
        ),
    ]
