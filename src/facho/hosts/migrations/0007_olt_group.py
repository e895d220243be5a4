import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0006_value_history'),
    ]

    operations = [
        migrations.CreateModel(
            name='OltGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True, verbose_name='name')),
            ],
            options={
                'verbose_name': 'OLT group',
                'verbose_name_plural': 'OLT groups',
                'ordering': ['name'],
            },
        ),
        migrations.AddField(
            model_name='olt',
            name='group',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='olts', to='hosts.oltgroup', verbose_name='group'),
        ),
    ]
