from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('onus', '0004_search'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='onuevent',
            index=models.Index(fields=['kind', 'at'], name='onu_event_of_kind'),
        ),
    ]
