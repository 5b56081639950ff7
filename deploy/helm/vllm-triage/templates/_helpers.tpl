{{- define "vllm-triage.name" -}}
{{- if contains "vllm-triage" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-vllm-triage" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "vllm-triage.selector" -}}
app.kubernetes.io/name: vllm-triage
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "vllm-triage.labels" -}}
{{ include "vllm-triage.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "vllm-triage.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "vllm-triage.name" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "vllm-triage.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end }}

{{- /* The store is PostgreSQL when its URL, or the file that holds it, is configured; else it is a file in /data. */ -}}
{{- define "vllm-triage.shared" -}}
{{- if hasPrefix "postgres" (toString (default "" .Values.config.storage)) }}true{{ end }}
{{- if .Values.config.storage_file }}true{{ end }}
{{- end }}
