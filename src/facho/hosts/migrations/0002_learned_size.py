import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hosts', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='LearnedSize',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.CharField(max_length=255, verbose_name='columns')),
                ('rows', models.PositiveSmallIntegerField(verbose_name='rows')),
                ('updated_at', models.DateTimeField(verbose_name='updated')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='learned_sizes', to='hosts.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'learned size',
                'verbose_name_plural': 'learned sizes',
                'ordering': ['olt', 'subject'],
                'constraints': [models.UniqueConstraint(fields=('olt', 'subject'), name='one_learned_size_per_olt_and_columns'), models.CheckConstraint(condition=models.Q(('rows__gte', 1)), name='learned_size_is_positive')],
            },
        ),
    ]
