import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('accounts', '0003_saved_views'), ('accounts', '0004_portuguese'), ('accounts', '0005_linked_identities'), ('accounts', '0006_second_factors'), ('accounts', '0007_login_sessions'), ('accounts', '0008_passkeys')]

    dependencies = [
        ('accounts', '0001_squashed_0002_limits_and_failed_tries'),
        ('sessions', '0001_initial'),
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
        migrations.AlterField(
            model_name='profile',
            name='language',
            field=models.CharField(blank=True, choices=[('es', 'Spanish'), ('en', 'English'), ('pt-br', 'Portuguese')], max_length=5, verbose_name='language'),
        ),
        migrations.CreateModel(
            name='LinkedIdentity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(max_length=255, verbose_name='issuer')),
                ('subject', models.CharField(max_length=255, verbose_name='subject')),
                ('signed_on_at', models.DateTimeField(verbose_name='last sign-on')),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='identity', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'linked identity',
                'verbose_name_plural': 'linked identities',
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='one_account_per_identity')],
            },
        ),
        migrations.CreateModel(
            name='SecondFactorDuty',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(max_length=10, unique=True, verbose_name='role')),
            ],
            options={
                'verbose_name': 'required second factor',
                'verbose_name_plural': 'required second factors',
            },
        ),
        migrations.CreateModel(
            name='RecoveryCode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recovery_codes', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'recovery code',
                'verbose_name_plural': 'recovery codes',
            },
        ),
        migrations.CreateModel(
            name='SecondFactor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.TextField(blank=True, default='', verbose_name='key')),
                ('confirmed_at', models.DateTimeField(blank=True, null=True, verbose_name='set up')),
                ('last_step', models.BigIntegerField(default=0, verbose_name='last step')),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='second_factor', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'second factor',
                'verbose_name_plural': 'second factors',
            },
        ),
        migrations.CreateModel(
            name='LoginSession',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('way', models.CharField(choices=[('password', 'password'), ('code', 'password and code'), ('recovery', 'password and recovery code'), ('passkey', 'passkey'), ('provider', 'company account'), ('directory', 'directory'), ('link', 'link')], max_length=10, verbose_name='log-in by')),
                ('begun_at', models.DateTimeField(verbose_name='begun')),
                ('seen_at', models.DateTimeField(verbose_name='last used')),
                ('address', models.CharField(max_length=45, verbose_name='address')),
                ('browser', models.CharField(blank=True, max_length=40, verbose_name='browser')),
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='login', to='sessions.session', verbose_name='session')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='login_sessions', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'session',
                'verbose_name_plural': 'sessions',
            },
        ),
        migrations.CreateModel(
            name='Passkey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, verbose_name='name')),
                ('host', models.CharField(max_length=253, verbose_name='host name')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('credential', models.BinaryField()),
                ('counter', models.BigIntegerField(default=0)),
                ('created_at', models.DateTimeField(verbose_name='created')),
                ('used_at', models.DateTimeField(blank=True, null=True, verbose_name='last used')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passkeys', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'passkey',
                'verbose_name_plural': 'passkeys',
                'constraints': [models.UniqueConstraint(fields=('user', 'created_at'), name='one_passkey_per_question')],
            },
        ),
    ]
