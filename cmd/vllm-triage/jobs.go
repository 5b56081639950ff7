package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"vllm-triage/triage/store"
)

func runJobs(ctx context.Context, env environment) (err error) {
	fs := flags(env, "jobs", "[list | retry ID... | retry all]", `List the work that waits and the work that was given up, or retry what was given up.

Ids that begin with j are jobs (triages), those with m are messages to a channel. "retry all" retries every job and every message that was
given up, except messages that became too old: those are retried by their id only.`)
	path := fs.String("config", defaultConfig, "configuration `file`")
	dead := fs.Bool("dead", false, "list only what was given up")
	args, err := parse(fs, env.args)
	if err != nil {
		return err
	}
	ids, err := retried(args)
	if err != nil {
		return err
	}
	c, err := loadConfig(env, *path)
	if err != nil {
		return err
	}
	s, err := existingStore(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if ids != nil {
		return retry(ctx, env.stdout, s, ids)
	}
	return listJobs(ctx, env.stdout, s, *dead)
}

// retried reads the arguments: nil is a list, else the ids to retry.
func retried(args []string) ([]string, error) {
	switch {
	case len(args) == 0, len(args) == 1 && args[0] == "list":
		return nil, nil
	case args[0] != "retry":
		return nil, usagef("unknown action %q: want list or retry", args[0])
	case len(args) == 1:
		return nil, usagef("retry what? Name ids such as j12 or m3, or \"all\"")
	}
	for _, id := range args[1:] {
		if _, _, err := parseID(id); err != nil && (id != "all" || len(args) != 2) {
			return nil, err
		}
	}
	return args[1:], nil
}

func parseID(id string) (kind byte, n int64, err error) {
	if len(id) > 1 && (id[0] == 'j' || id[0] == 'm') {
		if n, err = strconv.ParseInt(id[1:], 10, 64); err == nil && n > 0 {
			return id[0], n, nil
		}
	}
	return 0, 0, usagef("%q is no id: want j12 (a job), m3 (a message) or \"all\"", id)
}

func retry(ctx context.Context, w io.Writer, s *store.Store, ids []string) error {
	now := time.Now()
	if ids[0] == "all" {
		jobs, err := s.DeadJobs(ctx)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if err := s.ReviveJob(ctx, j.ID, now); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		n, err := s.ReviveConversation(ctx, 0, now)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s and %s will be retried\n", count(len(jobs), "job"), count(int(n), "message"))
		return err
	}
	for _, id := range ids {
		kind, n, err := parseID(id)
		if err != nil {
			return err
		}
		if kind == 'j' {
			err = s.ReviveJob(ctx, n, now)
		} else {
			_, err = s.ReviveConversation(ctx, n, now)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s will be retried\n", id)
	}
	return nil
}

func listJobs(ctx context.Context, w io.Writer, s *store.Store, deadOnly bool) error {
	jobs, messages, err := listed(ctx, s, deadOnly)
	if err != nil {
		return err
	}
	if len(jobs)+len(messages) == 0 {
		_, err := fmt.Fprintln(w, "nothing waits and nothing was given up")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATE\tDUE\tATTEMPTS\tINCIDENT\tWHAT\tLAST ERROR")
	for _, j := range jobs {
		fmt.Fprintf(t, "j%d\t%s\t%s\t%d\t%s\t%s: %s\t%s\n", j.ID, j.State, j.RunAt.Format(time.RFC3339), j.Attempts,
			dash(j.IncidentID), j.Kind, j.Reason, oneLine(j.Error))
	}
	for _, c := range messages {
		fmt.Fprintf(t, "m%d\t%s\t%s\t%d\t%s\tmessage to %s\t%s\n", c.ID, c.State, c.NextAt.Format(time.RFC3339), c.Attempts,
			c.IncidentID, c.Channel, oneLine(c.Error))
	}
	return t.Flush()
}

func listed(ctx context.Context, s *store.Store, deadOnly bool) ([]store.Job, []store.Conversation, error) {
	jobs, err := s.DeadJobs(ctx)
	if !deadOnly && err == nil {
		jobs, err = s.Jobs(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	messages, err := s.DeadConversations(ctx)
	if err != nil || deadOnly {
		return jobs, messages, err
	}
	pending, err := s.PendingConversations(ctx)
	return jobs, append(pending, messages...), err
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// oneLine keeps a text from breaking the table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
