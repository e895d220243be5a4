import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ('accounts', '0001_initial'),
        ('accounts', '0002_limits_and_failed_tries'),
    ]

    initial = True

    dependencies = [
        ('hosts', '0001_squashed_0011_trap_addresses'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='FailedTries',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=64, unique=True)),
                ('failures', models.PositiveIntegerField(verbose_name='failures')),
                ('failed_at', models.DateTimeField(db_index=True, verbose_name='last failure')),
            ],
            options={
                'verbose_name': 'failed attempts',
                'verbose_name_plural': 'failed attempts',
            },
        ),
        migrations.CreateModel(
            name='Profile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('language', models.CharField(blank=True, choices=[('es', 'Spanish'), ('en', 'English')], max_length=5, verbose_name='language')),
                ('time_zone', models.CharField(blank=True, max_length=60, verbose_name='time zone')),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='profile', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'profile',
                'verbose_name_plural': 'profiles',
            },
        ),
        migrations.CreateModel(
            name='ProfileGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('oltgroup', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='hosts.oltgroup', verbose_name='OLT group')),
                ('profile', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.profile', verbose_name='profile')),
            ],
            options={
                'verbose_name': 'limit to an OLT group',
                'verbose_name_plural': 'limits to OLT groups',
                'db_table': 'accounts_profile_olt_groups',
                'unique_together': {('profile', 'oltgroup')},
            },
        ),
        migrations.AddField(
            model_name='profile',
            name='olt_groups',
            field=models.ManyToManyField(blank=True, help_text='Only the OLTs of these groups are shown; none: all OLTs.', related_name='profiles', through='accounts.ProfileGroup', to='hosts.oltgroup', verbose_name='OLT groups'),
        ),
    ]
