package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq/recording"
)

// TestTriageOfAPrometheusThatDoesNotAnswer: the report is there, and a script sees that it says nothing about the model.
func TestTriageOfAPrometheusThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"login page":  {http.StatusOK, "<html>log in</html>", "check the URL and its path"},
		"null":        {http.StatusOK, "null", "check the URL and its path"},
		"wrong path":  {http.StatusNotFound, "nope", "404"},
		"refused":     {http.StatusUnauthorized, "", "credentials refused"},
		"overloaded":  {http.StatusServiceUnavailable, "", "server unavailable"},
		"cut in half": {http.StatusOK, `{"status":"success","data":{"resultT`, "check the URL and its path"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}))
		r := vllmTriage(t, "triage", "--prometheus", server.URL, "--model", "m")
		server.Close()
		require.Equal(t, exitFailed, r.code, name)
		require.Contains(t, r.stdout, "Prometheus did not answer", name)
		require.NotContains(t, r.stdout, "Server restarted", name)
		require.Contains(t, r.stderr, "queries was answered: ask prometheus at "+server.URL, name)
		require.Contains(t, r.stderr, tt.want, name)
	}
}

// TestTriageWithoutTheModel: Prometheus answers that it knows nothing, which is an answer.
func TestTriageWithoutTheModel(t *testing.T) {
	t.Parallel()
	rec, err := recording.Open("demodata/" + defaultDemo + "/tsdb")
	require.NoError(t, err)
	url, stop, err := rec.Start(time.Time{})
	require.NoError(t, err)
	defer stop()
	r := vllmTriage(t, "triage", "--prometheus", url, "--model", "nobody")
	require.Equal(t, exitOK, r.code, r.stderr)
	require.Contains(t, r.stdout, `no vLLM metrics for model_name="nobody"`)
}

func TestMistakesOfTheCommandLineAreFoundBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	replay := []string{"replay", "--recording", "demodata/" + defaultDemo}
	triage := []string{"triage", "--prometheus", "http://127.0.0.1:1"}
	for _, tt := range []struct {
		command []string
		flags   []string
		want    string
	}{
		{triage, []string{"--lang", "fr"}, `--lang is "fr", want en or ko`},
		{triage, []string{"--output", "xml"}, `--output is "xml", want text, json or slack`},
		{triage, []string{"--at", "9999-01-01T00:00:00Z"}, "has not come yet"},
		{replay, []string{"--webhook", "02.json", "--lang", "fr"}, `--lang is "fr", want en or ko`},
		{replay, []string{"--model", "demo", "--at", "2001-01-01T00:00:00Z"}, "is outside of the recording, which has 20"},
		{replay, []string{"--model", "demo", "--at", "9999-01-01T00:00:00Z"}, "is outside of the recording, which has 20"},
		{replay, []string{"--model", "demo", "--at", "noon"}, `--at "noon" is not an RFC 3339 time`},
		{[]string{"demo"}, []string{"--lang", "fr"}, `--lang is "fr", want en or ko`},
	} {
		r := vllmTriage(t, append(append([]string{}, tt.command...), tt.flags...)...)
		require.Equal(t, exitUsage, r.code, tt.flags)
		require.Contains(t, r.stderr, tt.want)
		require.Empty(t, r.stdout)
	}
}
