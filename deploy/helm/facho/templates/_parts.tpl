{{- /* What all parts have in common. */ -}}

{{- define "facho.image" -}}
{{ required "image.repository: where the image of deploy/Dockerfile is" .Values.image.repository }}:
{{- required "image.tag: which version" .Values.image.tag }}
{{- end }}

{{- define "facho.labels" -}}
{{ include "facho.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | quote }}
{{- end }}

{{- define "facho.selector" -}}
app.kubernetes.io/name: facho
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "facho.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
# Runs in hand have 8 s to finish, then they are handed back.
terminationGracePeriodSeconds: 30
{{- with .nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "facho.container" -}}
name: {{ .name }}
image: {{ include "facho.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: {{ toJson .command }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  - {name: FACHO_MODE, value: distributed}
  - {name: FACHO_SECRET_KEY_FILE, value: /run/secrets/facho/secret-key}
  - {name: FACHO_ENCRYPTION_KEYS_FILE, value: /run/secrets/facho/encryption-keys}
  - name: FACHO_ALLOWED_HOSTS
    value: {{ printf "%s,127.0.0.1" (required "host: the name by which browsers reach it" .root.Values.host) | quote }}
  - name: DATABASE_URL
    valueFrom: {secretKeyRef: {name: {{ .secret | quote }}, key: database-url}}
  - name: REDIS_URL
    valueFrom: {secretKeyRef: {name: {{ .secret | quote }}, key: redis-url}}
  {{- range $name, $value := .root.Values.settings }}
  - {name: {{ $name }}, value: {{ toString $value | quote }}}
  {{- end }}
  {{- range $name, $from := .root.Values.secretSettings }}
  - name: {{ $name }}
    valueFrom: {secretKeyRef: {name: {{ $from.name | quote }}, key: {{ $from.key | quote }}}}
  {{- end }}
  {{- with .env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - {name: keys, mountPath: /run/secrets/facho, readOnly: true}
  - {name: data, mountPath: /var/lib/facho}
  - {name: tmp, mountPath: /tmp}
  {{- if .definitions }}
  - {name: definitions, mountPath: /var/lib/facho/definitions, readOnly: true}
  {{- end }}
{{- with .resources }}
resources: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "facho.volumes" -}}
- name: keys
  secret:
    secretName: {{ .secret | quote }}
    defaultMode: 0440
    items:
      - {key: secret-key, path: secret-key}
      - {key: encryption-keys, path: encryption-keys}
# The file of the coordinator's log; everything else is in the database.
- {name: data, emptyDir: {sizeLimit: 256Mi}}
- {name: tmp, emptyDir: {sizeLimit: 64Mi}}
{{- if .definitions }}
- {name: definitions, configMap: {name: {{ printf "%s-definitions" .root.Release.Name }}}}
{{- end }}
{{- end }}

{{- define "facho.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ printf "%s-%s" .root.Release.Name .name }}
  labels: {{ include "facho.labels" . | nindent 4 }}
spec:
  replicas: {{ .replicas }}
  # Never two versions side by side: the newer one changes the database.
  strategy: {type: Recreate}
  selector:
    matchLabels: {{ include "facho.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{ include "facho.labels" . | nindent 8 }}
      {{- with .definitions }}
      annotations: {facho/definitions: {{ toJson . | sha256sum }}}
      {{- end }}
    spec:
      {{- include "facho.pod" . | nindent 6 }}
      # On different machines, where there are some.
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{ include "facho.selector" . | nindent 14 }}
      containers:
        - {{- include "facho.container" . | nindent 10 }}
          {{- with .more }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
      volumes: {{ include "facho.volumes" . | nindent 8 }}
{{- end }}
