import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('onus', '0005_event_kind'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='outage',
            name='acknowledged_at',
            field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name='acknowledged'),
        ),
        migrations.AddField(
            model_name='outage',
            name='acknowledged_by',
            field=models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='acknowledged by'),
        ),
        migrations.AddField(
            model_name='outage',
            name='acknowledgement',
            field=models.CharField(blank=True, db_default='', default='', max_length=500, verbose_name='note'),
        ),
    ]
