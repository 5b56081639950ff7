package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
	"vllm-triage/notify/console"
	"vllm-triage/notify/locale"
	"vllm-triage/notify/slack"
	"vllm-triage/promq"
	"vllm-triage/promq/recording"
	"vllm-triage/triage"
)

func runReplay(ctx context.Context, env environment) error {
	set := flags(env, "replay", "", `Triage a recorded incident, as of the moment its webhook was received: nothing later is read.

A recording is a directory with tsdb/ (Prometheus blocks), recording.json and webhooks/.`)
	dir := set.String("recording", "", "`directory` of the recording")
	webhook := set.String("webhook", "", "webhook `file`, a path or a name in webhooks/; or ask ad hoc with --model and --at")
	model := set.String("model", "", "model to ask about")
	at := set.String("at", "", "`time` to ask about, RFC 3339")
	output := set.String("output", "text", "`format`: text, json (the report) or slack (Block Kit of the message and its details)")
	lang := set.String("lang", "en", "language of the text: en or ko")
	dirKB := set.String("knowledge", "", "directory with causes and signals that override or add to the built-in ones")
	if _, err := parse(set, env.args); err != nil {
		return err
	}
	if *dir == "" {
		return usagef("--recording is missing")
	}
	if (*webhook == "") == (*model == "" && *at == "") {
		return usagef("give either --webhook or --model and --at")
	}
	if err := checkOutput(*output, *lang); err != nil {
		return err
	}
	base, err := loadKnowledge(*dirKB)
	if err != nil {
		return err
	}
	var incidents []triage.Incident
	if *webhook != "" {
		incidents, err = recordedIncidents(*dir, *webhook)
	} else {
		var t time.Time
		if t, err = time.Parse(time.RFC3339, *at); err != nil {
			return usagef("--at %q is not an RFC 3339 time such as 2026-11-29T14:05:00Z", *at)
		}
		incidents = []triage.Incident{triage.NewAdhoc(triage.Scope{Model: *model}, t, 0)}
	}
	if err != nil {
		return err
	}
	rec, err := recording.Open(filepath.Join(*dir, "tsdb"))
	if err != nil {
		return err
	}
	if err := within(rec, incidents, *webhook == ""); err != nil {
		return err
	}
	for _, in := range incidents {
		client, err := promq.NewClient(promq.Config{
			URL: "http://recording", HTTP: promq.DefaultHTTP(), RoundTripper: rec.RoundTripper(in.Now),
		})
		if err != nil {
			return err
		}
		report, err := triage.NewEngine(base, client, triage.Options{}).Triage(ctx, in)
		if err != nil {
			return err
		}
		if err := printReport(env.stdout, report, *output, *lang); err != nil {
			return err
		}
	}
	return nil
}

// lateEnough is how long after its last sample a recording may still be asked about.
const lateEnough = 5 * time.Minute

// within refuses a time that was typed and of which the recording knows nothing.
func within(rec *recording.Recording, incidents []triage.Incident, typed bool) error {
	first, last := rec.Bounds()
	for _, in := range incidents {
		if typed && (in.Now.Before(first) || in.Now.After(last.Add(lateEnough))) {
			return usagef("--at %s is outside of the recording, which has %s to %s", in.Now.Format(time.RFC3339),
				first.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// recordingFile is recording.json, as far as a replay needs it.
type recordingFile struct {
	Webhooks []struct {
		File       string    `json:"file"`
		ReceivedAt time.Time `json:"received_at"`
	} `json:"webhooks"`
}

// recordedIncidents reads a webhook of a recording together with the moment it was received.
func recordedIncidents(dir, webhook string) ([]triage.Incident, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "recording.json"))
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	var meta recordingFile
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("read recording.json: %w", err)
	}
	path := webhook
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(webhook) == webhook {
		path = filepath.Join(dir, "webhooks", webhook)
		body, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read webhook: %w", err)
	}
	payload, err := triage.ParsePayload(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, w := range meta.Webhooks {
		if w.File == filepath.Base(path) {
			return triage.NewIncidents(payload, w.ReceivedAt), nil
		}
	}
	return nil, fmt.Errorf("recording.json does not say when %s was received", filepath.Base(path))
}

// printReport writes a report in the format asked for.
func printReport(w io.Writer, r triage.Report, format, lang string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	case "text":
		m := notify.NewMessage(r, notify.Options{Language: lang})
		_, err := console.New(w, console.Auto).Post(context.Background(), "", m)
		return err
	case "slack":
		m := notify.NewMessage(r, notify.Options{Language: lang})
		for _, kind := range []notify.Kind{notify.KindCard, notify.KindDetails} {
			if err := printBlocks(w, slack.Render(m.As(kind), slack.View{Interactive: true, Charts: slack.TextCharts})); err != nil {
				return err
			}
		}
		return nil
	}
	return checkOutput(format, lang)
}

// checkOutput refuses a format or a language that does not exist, before anything is asked.
func checkOutput(format, lang string) error {
	if !slices.Contains([]string{"text", "json", "slack"}, format) {
		return usagef("--output is %q, want text, json or slack", format)
	}
	return checkLanguage(lang)
}

func checkLanguage(lang string) error {
	if known := locale.Languages(); !slices.Contains(known, lang) {
		return usagef("--lang is %q, want %s", lang, strings.Join(known, " or "))
	}
	return nil
}

// printBlocks writes a message as Slack gets it, in the form that chat.postMessage and the Block Kit Builder take.
func printBlocks(w io.Writer, r slack.Rendered) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Text   string          `json:"text"`
		Blocks []slackgo.Block `json:"blocks"`
	}{r.Text, r.Blocks})
}
