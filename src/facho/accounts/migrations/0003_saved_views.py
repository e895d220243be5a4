import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_squashed_0002_limits_and_failed_tries'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('page', models.CharField(max_length=40, verbose_name='page')),
                ('name', models.CharField(max_length=60, verbose_name='name')),
                ('query', models.CharField(blank=True, max_length=2000, verbose_name='query')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'saved view',
                'verbose_name_plural': 'saved views',
                'constraints': [models.UniqueConstraint(fields=('user', 'page', 'name'), name='one_view_per_name')],
            },
        ),
    ]
