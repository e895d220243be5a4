from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('onus', '0006_acknowledgement'),
    ]

    operations = [
        migrations.AddField(
            model_name='onu',
            name='missed_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='last miss'),
        ),
    ]
