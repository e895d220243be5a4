
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0001_squashed_0011_trap_addresses'),
    ]

    operations = [
        migrations.AddField(
            model_name='pause',
            name='keeps_polling',
            field=models.BooleanField(db_default=False, default=False, help_text='Only its alerts are silenced.', verbose_name='polling continues'),
        ),
    ]
