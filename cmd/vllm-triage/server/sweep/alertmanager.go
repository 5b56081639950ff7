package sweep

import (
	"context"
	"time"

	"vllm-triage/triage"
)

// Lister lists the fingerprints of the alerts that an Alertmanager holds as firing, silenced and inhibited ones among them.
type Lister func(ctx context.Context, now time.Time) (map[string]bool, error)

// Alertmanager knows which alerts fire by what Alertmanager holds. What it does not hold is over.
type Alertmanager struct {
	list Lister
}

// NewAlertmanager returns a Source that asks list.
func NewAlertmanager(list Lister) *Alertmanager { return &Alertmanager{list} }

// Ask implements Source.
func (a *Alertmanager) Ask(ctx context.Context, alerts []triage.Alert, now time.Time) ([]Answer, error) {
	held, err := a.list(ctx, now)
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, len(alerts))
	for i, x := range alerts {
		answers[i] = Over
		if held[x.Fingerprint] {
			answers[i] = Fires
		}
	}
	return answers, nil
}
