import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('neighbours', '0001_netbox'), ('neighbours', '0002_webhooks')]

    initial = True

    dependencies = [
        ('hosts', '0012_silence'),
        ('onus', '0004_squashed_0005_customers_and_texts'),
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
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True, verbose_name='name')),
                ('url', models.TextField(blank=True, default='', verbose_name='address')),
                ('shown_as', models.CharField(editable=False, max_length=300, verbose_name='address shown as')),
                ('signing_key', models.TextField(blank=True, default='', verbose_name='signing key')),
                ('kinds', models.JSONField(default=list, verbose_name='events')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('event_cursor', models.BigIntegerField(default=0, editable=False)),
                ('outage_cursor', models.BigIntegerField(default=0, editable=False)),
                ('last_old_outage', models.BigIntegerField(default=0, editable=False)),
                ('begins_at', models.DateTimeField(editable=False, verbose_name='sends since')),
                ('replays_events_to', models.BigIntegerField(default=0, editable=False)),
                ('replays_outages_to', models.BigIntegerField(default=0, editable=False)),
                ('failing_since', models.DateTimeField(editable=False, null=True, verbose_name='fails since')),
                ('last_error', models.CharField(blank=True, editable=False, max_length=300, verbose_name='last error')),
                ('last_sent_at', models.DateTimeField(editable=False, null=True, verbose_name='last sent')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('olt_group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='hosts.oltgroup', verbose_name='OLT group')),
            ],
            options={
                'verbose_name': 'webhook',
                'verbose_name_plural': 'webhooks',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='OutageEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('outage_began', 'outage began'), ('outage_ended', 'outage ended')], max_length=12)),
                ('at', models.DateTimeField()),
                ('is_latest', models.BooleanField(default=True)),
                ('outage', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='onus.outage')),
            ],
            options={
                'verbose_name': 'event of an outage',
                'verbose_name_plural': 'events of outages',
                'indexes': [models.Index(fields=['outage'], name='outage_event_outage'), models.Index(fields=['at'], name='outage_event_time'), models.Index(condition=models.Q(('is_latest', True), ('kind', 'outage_began')), fields=['id'], name='outage_event_open')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('is_latest', True)), fields=('outage',), name='one_latest_event_per_outage')],
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_test', models.BooleanField(default=False, verbose_name='test')),
                ('is_replay', models.BooleanField(default=False, verbose_name='sent again')),
                ('count', models.PositiveIntegerField(default=0, verbose_name='events')),
                ('after_event', models.BigIntegerField(default=0)),
                ('to_event', models.BigIntegerField(default=0)),
                ('after_outage_event', models.BigIntegerField(default=0)),
                ('to_outage_event', models.BigIntegerField(default=0)),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('sent', 'sent'), ('failed', 'failed'), ('replaced', 'replaced')], default='waiting', max_length=10, verbose_name='state')),
                ('created_at', models.DateTimeField(verbose_name='written')),
                ('tries', models.PositiveIntegerField(default=0, verbose_name='tries')),
                ('next_try_at', models.DateTimeField(null=True, verbose_name='next try')),
                ('last_error', models.CharField(blank=True, max_length=300, verbose_name='last error')),
                ('sent_at', models.DateTimeField(null=True, verbose_name='sent')),
                ('webhook', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='neighbours.webhook', verbose_name='webhook')),
            ],
            options={
                'verbose_name': 'webhook delivery',
                'verbose_name_plural': 'webhook deliveries',
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['webhook', 'id'], name='webhook_delivery_log'), models.Index(fields=['created_at'], name='webhook_delivery_time'), models.Index(condition=models.Q(('state', 'waiting')), fields=['next_try_at'], name='webhook_delivery_due')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('is_test', False), ('state', 'waiting')), fields=('webhook',), name='one_waiting_batch_per_webhook')],
            },
        ),
    ]
