from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('alerts', '0004_expired_notices'),
    ]

    operations = [
        migrations.AddField(
            model_name='notice',
            name='was_refused',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]
