from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('executions', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='execution',
            name='duration_ms',
            field=models.PositiveIntegerField(default=0, verbose_name='duration (ms)'),
        ),
    ]
