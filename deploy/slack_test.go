package deploy_test

import (
	"encoding/json"
	"net/url"
	"os"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"vllm-triage/cmd/vllm-triage/server/chatops"
	notifyslack "vllm-triage/notify/slack"
)

// manifest reads a Slack manifest strictly: a key that slack-go does not know is a mistake.
func manifest(t *testing.T, path string) slack.Manifest {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	var m slack.Manifest
	require.NoError(t, decoder.Decode(&m))
	return m
}

func TestSlackManifestsKeepSlacksLimits(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"slack/manifest.yaml", "slack/manifest-socket.yaml"} {
		m := manifest(t, path)
		require.LessOrEqual(t, len(m.Display.Name), 35)
		require.LessOrEqual(t, len(m.Display.Description), 140)
		require.GreaterOrEqual(t, len(m.Display.LongDescription), 174, "Slack wants 174 characters or none")
		require.LessOrEqual(t, len(m.Display.LongDescription), 4000)
		require.Regexp(t, `^[a-z0-9._-]{1,80}$`, m.Features.BotUser.DisplayName)
		require.Len(t, m.Features.SlashCommands, 1)
		command := m.Features.SlashCommands[0]
		require.LessOrEqual(t, len(command.Command), 32)
		require.LessOrEqual(t, len(command.Description), 2000)
		require.LessOrEqual(t, len(command.UsageHint), 1000)
		require.True(t, m.Settings.Interactivity.IsEnabled)
	}
}

// TestSlackManifestsAskForLittle fixes the scopes: a new one is a decision, not a slip.
func TestSlackManifestsAskForLittle(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"slack/manifest.yaml", "slack/manifest-socket.yaml"} {
		scopes := manifest(t, path).OAuthConfig.Scopes
		require.Equal(t, []string{"chat:write", "commands"}, scopes.Bot)
		require.Equal(t, []string{
			"chat:write.public", "files:write", "channels:history", "groups:history", "users:read", "usergroups:read",
		}, scopes.BotOptional)
		// `check --live` asks for the same ones.
		needed, optional := notifyslack.Scopes(true)
		require.Equal(t, needed, scopes.Bot)
		var names []string
		for _, s := range optional {
			names = append(names, s.Scope)
		}
		require.Equal(t, names, scopes.BotOptional)
		require.Empty(t, scopes.User)
		require.Empty(t, scopes.UserOptional)
	}
}

// TestSlackManifestLeadsToTheService compares the addresses of the manifest with the paths that the service serves.
func TestSlackManifestLeadsToTheService(t *testing.T) {
	t.Parallel()
	m := manifest(t, "slack/manifest.yaml")
	for path, address := range map[string]string{
		chatops.PathCommands: m.Features.SlashCommands[0].Url, chatops.PathInteractions: m.Settings.Interactivity.RequestUrl,
		chatops.PathEvents: m.Settings.EventSubscriptions.RequestUrl,
	} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		require.Equal(t, path, u.Path)
		require.Contains(t, chatops.Routes(), path)
	}
	require.Len(t, chatops.Routes(), 3, "Slack knows all of them")
	require.Empty(t, m.Settings.Interactivity.MessageMenuOptionsUrl, "no menu of ours asks the service for its options")
}

// TestSlackManifestsDifferInTransportOnly compares the two after taking out what Socket Mode does without.
func TestSlackManifestsDifferInTransportOnly(t *testing.T) {
	t.Parallel()
	http, socket := manifest(t, "slack/manifest.yaml"), manifest(t, "slack/manifest-socket.yaml")
	require.True(t, socket.Settings.SocketModeEnabled)
	for _, link := range []string{
		http.Features.SlashCommands[0].Url, http.Settings.Interactivity.RequestUrl, http.Settings.EventSubscriptions.RequestUrl,
	} {
		parsed, err := url.Parse(link)
		require.NoError(t, err)
		require.Equal(t, "https", parsed.Scheme, "Slack calls https only")
	}
	http.Features.SlashCommands[0].Url = ""
	http.Settings.Interactivity.RequestUrl = ""
	http.Settings.EventSubscriptions.RequestUrl = ""
	http.Settings.SocketModeEnabled = true
	want, err := json.Marshal(http)
	require.NoError(t, err)
	got, err := json.Marshal(socket)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}
