// Package alertmanager talks to Alertmanager's v2 API (0.20 and newer, Mimir's and Grafana's Alertmanager too): it makes,
// lists and ends silences and asks which alerts are there.
//
// Several peers of one cluster may be named; they are tried in order until one answers. What is written to one reaches the
// others by their own gossip, within seconds.
//
// A silence that is too wide hides what nobody meant to hide, so CreateSilence refuses anything that does not name a model,
// or an alert in a namespace, and anything longer than the limit.
package alertmanager
