import django.core.validators
import django.db.models.deletion
import facho.hosts.secrets
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Brand',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True, verbose_name='name')),
            ],
            options={
                'verbose_name': 'brand',
                'verbose_name_plural': 'brands',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='OltModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, verbose_name='name')),
                ('brand', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='models', to='hosts.brand', verbose_name='brand')),
            ],
            options={
                'verbose_name': 'OLT model',
                'verbose_name_plural': 'OLT models',
                'ordering': ['brand__name', 'name'],
            },
        ),
        migrations.CreateModel(
            name='Olt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True, verbose_name='name')),
                ('host', models.CharField(help_text='Name or address, as the operator wrote it.', max_length=253, verbose_name='host')),
                ('address', models.GenericIPAddressField(verbose_name='resolved address')),
                ('port', models.PositiveIntegerField(default=161, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(65535)], verbose_name='UDP port')),
                ('vendor', models.CharField(blank=True, help_text='Empty until it is recognised.', max_length=60, verbose_name='vendor definition')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('snmp_version', models.CharField(choices=[('1', 'SNMPv1'), ('2c', 'SNMPv2c'), ('3', 'SNMPv3')], default='2c', max_length=2, verbose_name='SNMP version')),
                ('community', facho.hosts.secrets.SecretField(blank=True, default='', verbose_name='community')),
                ('v3_user', models.CharField(blank=True, max_length=64, verbose_name='SNMPv3 user')),
                ('v3_auth_protocol', models.CharField(blank=True, max_length=10, verbose_name='authentication protocol')),
                ('v3_auth_key', facho.hosts.secrets.SecretField(blank=True, default='', verbose_name='authentication key')),
                ('v3_priv_protocol', models.CharField(blank=True, max_length=10, verbose_name='privacy protocol')),
                ('v3_priv_key', facho.hosts.secrets.SecretField(blank=True, default='', verbose_name='privacy key')),
                ('max_in_flight', models.PositiveSmallIntegerField(blank=True, help_text='Empty: what the vendor definition says.', null=True, verbose_name='requests in flight')),
                ('packets_per_second', models.PositiveIntegerField(blank=True, null=True, verbose_name='packets per second')),
                ('reachability', models.CharField(choices=[('unknown', 'unknown'), ('up', 'answers'), ('down', 'does not answer')], default='unknown', editable=False, max_length=10, verbose_name='reachability')),
                ('consecutive_failures', models.PositiveIntegerField(default=0, editable=False, verbose_name='failures in a row')),
                ('last_answer_at', models.DateTimeField(editable=False, null=True, verbose_name='last answer')),
                ('last_error', models.CharField(blank=True, editable=False, max_length=300, verbose_name='last error')),
                ('sys_name', models.CharField(blank=True, editable=False, max_length=255, verbose_name='system name')),
                ('sys_descr', models.CharField(blank=True, editable=False, max_length=255, verbose_name='system description')),
                ('sys_object_id', models.CharField(blank=True, editable=False, max_length=255, verbose_name='system OID')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='olts', to='hosts.oltmodel', verbose_name='model')),
            ],
            options={
                'verbose_name': 'OLT',
                'verbose_name_plural': 'OLTs',
                'ordering': ['name'],
            },
        ),
        migrations.AddConstraint(
            model_name='oltmodel',
            constraint=models.UniqueConstraint(fields=('brand', 'name'), name='one_model_name_per_brand'),
        ),
        migrations.AddConstraint(
            model_name='olt',
            constraint=models.UniqueConstraint(fields=('address', 'port'), name='one_olt_per_address_and_port', violation_error_message='Another OLT already has this address and port.'),
        ),
        migrations.AddConstraint(
            model_name='olt',
            constraint=models.CheckConstraint(condition=models.Q(('port__gte', 1), ('port__lte', 65535)), name='olt_port_is_a_port'),
        ),
        migrations.AddConstraint(
            model_name='olt',
            constraint=models.CheckConstraint(condition=models.Q(('snmp_version__in', ['1', '2c', '3'])), name='olt_snmp_version_is_known'),
        ),
        migrations.AddConstraint(
            model_name='olt',
            constraint=models.CheckConstraint(condition=models.Q(('max_in_flight__isnull', True), ('max_in_flight__gte', 1), _connector='OR'), name='olt_in_flight_is_positive'),
        ),
    ]
