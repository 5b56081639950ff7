package eval

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"vllm-triage/promq/recording"
	"vllm-triage/triage"
)

// Recording is one recorded incident with its truth.
type Recording struct {
	ID    string
	Dir   string
	Truth Truth
	Data  *recording.Recording
	// Webhooks are all notifications in the order of receipt, scored or not.
	Webhooks []Webhook
	// Start and End bound the recording; the fault lies between FaultStart and FaultEnd.
	Start, FaultStart, FaultEnd, End time.Time

	model string
	askAt time.Time
}

// Webhook is one recorded notification.
type Webhook struct {
	File       string
	ReceivedAt time.Time
	Body       []byte
	Payload    triage.Payload
	// Scored says that the webhook is a case; the others must not crash anything and are good tests of calm.
	Scored bool
	// Alert is the name of the alert, Status "firing" or "resolved".
	Alert, Status string
}

// Case is one question with its accepted answers.
type Case struct {
	Recording *Recording
	// Alert is the name of the alert that asks, "adhoc" for a question without one.
	Alert string
	// Payload is the notification behind the incident, nil for a question without one.
	Payload  *triage.Payload
	Incident triage.Incident
	// Data is what the engine reads.
	Data *recording.Recording
	// Bottleneck is the right answer, Also what a second expert would accept.
	Bottleneck string
	Also       []string
	// Triggers are the right answers on the second axis.
	Triggers []string
	// Where is what the answer must name as its place; empty for any.
	Where string
	// MustNot lists bottlenecks that must not stand first.
	MustNot []string
}

// Name is the case's name: recording and alert.
func (c Case) Name() string { return c.Recording.ID + "/" + c.Alert }

// Load reads recordings and returns their cases: each firing webhook received 30 s or more after the fault began, or an
// ad-hoc question where there is none. A directory is a recording or a directory of recordings. Errors name the file.
func Load(dirs ...string) ([]Case, error) {
	recs, err := LoadRecordings(dirs...)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, r := range recs {
		cases = append(cases, r.Cases()...)
	}
	return cases, nil
}

// LoadRecordings reads recordings, sorted by id.
func LoadRecordings(dirs ...string) ([]*Recording, error) {
	var all []*Recording
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() && len(dirs) > 1 {
			continue // What a shell pattern caught beside the directories, a README for one.
		}
		found, err := expand(dir)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			r, err := loadRecording(d)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("load recordings: no directory given")
	}
	slices.SortFunc(all, func(a, b *Recording) int { return compareStrings(a.ID, b.ID, a.Dir, b.Dir) })
	return all, nil
}

// expand returns dir, or the recordings right below it.
func expand(dir string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(dir, "recording.json")); err == nil {
		return []string{dir}, nil
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "recording.json"))
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("load recordings: %s holds no recording.json, nor does a directory in it", dir)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	slices.Sort(found)
	return found, nil
}

func loadRecording(dir string) (*Recording, error) {
	var doc struct {
		ID       string    `json:"id"`
		Start    time.Time `json:"start"`
		End      time.Time `json:"end"`
		Webhooks []struct {
			File       string    `json:"file"`
			ReceivedAt time.Time `json:"received_at"`
		} `json:"webhooks"`
		Adhoc struct {
			Model string    `json:"model"`
			At    time.Time `json:"at"`
		} `json:"adhoc"`
	}
	if err := readJSON(filepath.Join(dir, "recording.json"), &doc); err != nil {
		return nil, err
	}
	truth, err := readTruth(dir)
	if err != nil {
		return nil, err
	}
	if len(truth.Webhooks) != len(doc.Webhooks) {
		return nil, fmt.Errorf("read %s: truth.json knows %d webhooks, recording.json %d", dir, len(truth.Webhooks), len(doc.Webhooks))
	}
	data, err := recording.Open(filepath.Join(dir, "tsdb"))
	if err != nil {
		return nil, err
	}
	r := &Recording{
		ID: doc.ID, Dir: dir, Truth: truth, Data: data,
		Start: doc.Start, End: doc.End, FaultStart: unix(truth.FaultStart), FaultEnd: unix(truth.FaultEnd),
		model: doc.Adhoc.Model, askAt: doc.Adhoc.At,
	}
	for i, w := range doc.Webhooks {
		body, err := os.ReadFile(filepath.Join(dir, "webhooks", w.File))
		if err != nil {
			return nil, fmt.Errorf("read recording: %w", err)
		}
		p, err := triage.ParsePayload(body)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, "webhooks", w.File), err)
		}
		r.Webhooks = append(r.Webhooks, Webhook{
			File: w.File, ReceivedAt: w.ReceivedAt, Body: body, Payload: p,
			Scored: truth.scored(truth.Webhooks[i]), Alert: truth.Webhooks[i].Alert, Status: truth.Webhooks[i].Status,
		})
	}
	return r, nil
}

// Model is the model that the recording is about.
func (r *Recording) Model() string { return r.model }

// Cases returns the questions that are scored.
func (r *Recording) Cases() []Case {
	var out []Case
	for _, w := range r.Webhooks {
		if !w.Scored {
			continue
		}
		// A notification of one alert group: all its alerts have one scope.
		in := triage.NewIncidents(w.Payload, w.ReceivedAt)[0]
		c := r.Case(w.Alert, in)
		c.Payload = &w.Payload
		out = append(out, c)
	}
	if len(out) == 0 {
		out = append(out, r.Case("adhoc", triage.NewAdhoc(triage.Scope{Model: r.model}, r.askAt, 0)))
	}
	return out
}

// Case returns a question to the recording with the answers that the truth accepts from that alert's point of view.
func (r *Recording) Case(alert string, in triage.Incident) Case {
	bottleneck, triggers := r.Truth.ofAlert(alert)
	return Case{
		Recording: r, Alert: alert, Incident: in, Data: r.Data,
		Bottleneck: bottleneck, Also: r.Truth.Also, Triggers: triggers,
		Where: r.Truth.Where, MustNot: r.Truth.MustNot,
	}
}

// compareStrings compares pairs in turn.
func compareStrings(pairs ...string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		switch {
		case pairs[i] < pairs[i+1]:
			return -1
		case pairs[i] > pairs[i+1]:
			return 1
		}
	}
	return 0
}
