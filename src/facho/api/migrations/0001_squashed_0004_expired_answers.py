import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ('api', '0001_initial'),
        ('api', '0002_token_name_and_groups'),
        ('api', '0003_kept_answer'),
        ('api', '0004_expired_answers'),
    ]

    initial = True

    dependencies = [
        ('hosts', '0001_squashed_0011_trap_addresses'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('name', models.CharField(blank=True, db_default='', default='', max_length=80, verbose_name='name')),
                ('role', models.CharField(max_length=10, verbose_name='role')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('expires_at', models.DateTimeField(blank=True, null=True, verbose_name='expires')),
                ('last_used_at', models.DateTimeField(blank=True, null=True, verbose_name='last used')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'API token',
                'verbose_name_plural': 'API tokens',
                'ordering': ['user', 'id'],
            },
        ),
        migrations.CreateModel(
            name='TokenGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('oltgroup', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='hosts.oltgroup', verbose_name='OLT group')),
                ('token', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='api.apitoken', verbose_name='API token')),
            ],
            options={
                'verbose_name': 'limit to an OLT group',
                'verbose_name_plural': 'limits to OLT groups',
            },
        ),
        migrations.AddField(
            model_name='apitoken',
            name='olt_groups',
            field=models.ManyToManyField(blank=True, help_text='Only the OLTs of these groups are shown; none: all that its owner sees.', related_name='api_tokens', through='api.TokenGroup', to='hosts.oltgroup', verbose_name='OLT groups'),
        ),
        migrations.CreateModel(
            name='KeptAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=100)),
                ('path', models.CharField(max_length=200)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('body', models.JSONField(null=True)),
                ('created_at', models.DateTimeField()),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'stored API answer',
                'verbose_name_plural': 'stored API answers',
                'indexes': [models.Index(fields=['created_at'], name='kept_answer_created')],
                'constraints': [models.UniqueConstraint(fields=('user', 'key'), name='one_answer_per_user_and_key')],
            },
        ),
        migrations.AddConstraint(
            model_name='tokengroup',
            constraint=models.UniqueConstraint(fields=('token', 'oltgroup'), name='one_limit_per_token_and_group'),
        ),
    ]
