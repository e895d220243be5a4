import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('hosts', '0012_silence'),
    ]

    operations = [
        migrations.CreateModel(
            name='NetBoxLink',
            fields=[
                ('olt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='netbox', serialize=False, to='hosts.olt', verbose_name='OLT')),
                ('device_id', models.PositiveBigIntegerField(unique=True, verbose_name='device in NetBox')),
            ],
            options={
                'verbose_name': 'device in NetBox',
                'verbose_name_plural': 'devices in NetBox',
            },
        ),
    ]
