import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0002_learned_size'),
    ]

    operations = [
        migrations.AddField(
            model_name='olt',
            name='next_probe_at',
            field=models.DateTimeField(editable=False, null=True, verbose_name='next probe'),
        ),
        migrations.AddField(
            model_name='olt',
            name='probes_done',
            field=models.PositiveSmallIntegerField(default=0, editable=False, verbose_name='probes without an answer'),
        ),
        migrations.CreateModel(
            name='Pause',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('starts_at', models.DateTimeField(verbose_name='from')),
                ('ends_at', models.DateTimeField(verbose_name='to')),
                ('note', models.CharField(blank=True, max_length=200, verbose_name='note')),
                ('olt', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='pauses', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'pause',
                'verbose_name_plural': 'pauses',
                'ordering': ['-starts_at'],
                'indexes': [models.Index(fields=['ends_at'], name='pause_end')],
                'constraints': [models.CheckConstraint(condition=models.Q(('ends_at__gt', models.F('starts_at'))), name='pause_ends_after_start')],
            },
        ),
    ]
