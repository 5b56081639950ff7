// Package deploy holds no code: its folders are examples to copy from (Alertmanager, Prometheus rules, dashboards, Slack
// manifests, Helm chart, plain manifests, compose). Its tests run the programs that will read them (promtool, amtool, helm)
// and hold names that occur here against the code.
package deploy
