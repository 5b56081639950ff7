package triage

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/prometheus/alertmanager/template"
)

// MaxDepth is how deep a webhook body may nest; Alertmanager's own needs 4.
const MaxDepth = 16

// Payload is the body of an Alertmanager webhook, version 4. It embeds the template data that Alertmanager marshals and
// adds the fields of notify/webhook.Message; importing that package would double the binary.
type Payload struct {
	template.Data

	Version         string `json:"version"`
	GroupKey        string `json:"groupKey"`
	TruncatedAlerts uint64 `json:"truncatedAlerts"`
	// NotificationReason is snake_case on the wire, absent before Alertmanager 0.32.
	NotificationReason string `json:"notification_reason"`
}

// ParsePayload reads one webhook body. Its errors are for the sender: they name what is wrong with the body.
func ParsePayload(body []byte) (Payload, error) {
	if err := checkDepth(body); err != nil {
		return Payload{}, err
	}
	var p Payload
	if err := json.Unmarshal(body, &p); err != nil {
		return Payload{}, fmt.Errorf("webhook body is not JSON of an Alertmanager notification: %w", err)
	}
	if p.Version != "4" {
		return Payload{}, fmt.Errorf(
			"webhook version is %q, want \"4\": send Alertmanager's default payload (no custom \"payload:\" template)", p.Version)
	}
	if len(p.Alerts) == 0 {
		return Payload{}, errors.New("webhook has no alerts")
	}
	for i, a := range p.Alerts {
		if a.Status != "firing" && a.Status != "resolved" {
			return Payload{}, fmt.Errorf("alerts[%d].status is %q, want \"firing\" or \"resolved\"", i, a.Status)
		}
		if a.StartsAt.IsZero() {
			return Payload{}, fmt.Errorf("alerts[%d].startsAt is missing", i)
		}
	}
	return p, nil
}

// checkDepth refuses bodies that nest deeper than MaxDepth, which encoding/json would follow to 10,000 levels.
func checkDepth(body []byte) error {
	depth, inString, escaped := 0, false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = c == '\\'
			inString = c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("webhook body nests deeper than %d levels", MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
