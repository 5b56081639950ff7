package eval

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// Truth is what a recording's truth.json says was injected, and when.
type Truth struct {
	ID         string `json:"id"`
	Bottleneck string `json:"bottleneck"`
	Trigger    string `json:"trigger"`
	// Also lists bottlenecks that a second expert would accept: they count in the lenient figure only.
	Also []string `json:"also"`
	// MustNot lists bottlenecks that would be harmful to name.
	MustNot []string `json:"must_not"`
	// Where is an instance or model that the answer must name; empty when the incident is about all replicas.
	Where string `json:"where"`
	// FaultStart and FaultEnd are Unix times in seconds.
	FaultStart float64 `json:"fault_start"`
	FaultEnd   float64 `json:"fault_end"`
	// Webhooks says of each webhook, in the order of the files, what it was.
	Webhooks []TruthWebhook `json:"webhooks"`
}

// TruthWebhook is one webhook as the recorder saw it.
type TruthWebhook struct {
	At     float64 `json:"at"` // Unix time of receipt, in seconds.
	Status string  `json:"status"`
	Alert  string  `json:"alertname"`
}

const (
	// settle is how long after the fault a webhook must come to be scored: before, the fault cannot be in the data.
	settle = 30
	// grace is how long after the fault's end a webhook is still about the fault, in seconds.
	grace = 5
)

// scored says whether a webhook is a case.
func (t Truth) scored(w TruthWebhook) bool {
	return w.Status == "firing" && w.At >= t.FaultStart+settle && w.At <= t.FaultEnd+grace
}

// ofAlert is the truth from the point of view of one alert. An InstanceDown alert is about the replica whatever follows
// from its loss, unless the front end itself is what stopped answering.
func (t Truth) ofAlert(alert string) (bottleneck string, triggers []string) {
	if alert == "VLLMInstanceDown" && t.Bottleneck != "frontend_bound" {
		return "replica_down", []string{t.Trigger, "restart", "replica_loss", "config_change", "none"}
	}
	return t.Bottleneck, []string{t.Trigger}
}

func readTruth(dir string) (Truth, error) {
	var t Truth
	if err := readJSON(filepath.Join(dir, "truth.json"), &t); err != nil {
		return t, err
	}
	if t.Bottleneck == "" || t.Trigger == "" || t.FaultStart <= 0 {
		return t, fmt.Errorf("read %s: bottleneck, trigger and fault_start are needed", filepath.Join(dir, "truth.json"))
	}
	return t, nil
}

func readJSON(file string, v any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read recording: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}

// unix turns seconds since the epoch into a moment, to the millisecond.
func unix(seconds float64) time.Time { return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC() }
