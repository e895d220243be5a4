
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('execution_coordinator', '0002_coordinator_state'),
    ]

    operations = [
        migrations.AlterField(
            model_name='quotatracker',
            name='created_at',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
    ]
