// Command vllm-triage receives Alertmanager webhooks for vLLM alerts, asks Prometheus what went on, and posts a ranked
// root-cause hypothesis. `vllm-triage help` lists the subcommands; serve runs the service.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"vllm-triage/config"
)

// version is set at build time with -X main.version=….
var version = "dev"

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, environment{
		args: os.Args[1:], getenv: os.Getenv, lookupenv: os.LookupEnv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	})
	stop()
	os.Exit(code)
}

// environment is what a subcommand sees of the outside world.
type environment struct {
	args           []string
	getenv         func(string) string
	lookupenv      config.Lookup
	stdin          io.Reader
	stdout, stderr io.Writer
}

// command is one subcommand.
type command struct {
	name    string
	summary string
	run     func(ctx context.Context, env environment) error
}

// commands lists the subcommands in the order of the help.
func commands() []command {
	return []command{
		{"demo", "show a recorded incident from webhook to Slack message; needs nothing else", runDemo},
		{"serve", "run the service", runServe},
		{"triage", "ask a live Prometheus about a model, now or at a time", runTriage},
		{"replay", "triage a recorded incident", runReplay},
		{"eval", "measure the engine on recorded incidents whose cause is known", runEval},
		{"causes", "list the causes that can be found", runCauses},
		{"explain", "print a cause: mechanism, evidence, next steps", runExplain},
		{"check", "check a configuration; with --live also ask Prometheus and Slack", runCheck},
		{"jobs", "list work and messages that wait or were given up, and retry them", runJobs},
		{"backup", "copy the SQLite database while the service runs", runBackup},
		{"version", "print the version", runVersion},
	}
}

// run executes one subcommand and turns its error into an exit code.
func run(ctx context.Context, env environment) int {
	if len(env.args) == 0 {
		usage(env.stderr)
		return exitUsage
	}
	name := env.args[0]
	env.args = env.args[1:]
	switch name {
	case "help", "-h", "--help", "-help":
		usage(env.stdout)
		return exitOK
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		err := c.run(ctx, env)
		var bad *usageError
		switch {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return exitOK
		case errors.As(err, &bad):
			fmt.Fprintf(env.stderr, "vllm-triage %s: %v\nRun \"vllm-triage %s --help\" for its flags.\n", name, err, name)
			return exitUsage
		case ctx.Err() != nil && name == "serve" && errors.Is(err, context.Canceled):
			// A service that is told to stop while it starts has done as it was told.
			fmt.Fprintf(env.stderr, "vllm-triage serve: stopped before it served: %v\n", context.Cause(ctx))
			return exitOK
		default:
			fmt.Fprintf(env.stderr, "vllm-triage %s: %v\n", name, err)
			return exitFailed
		}
	}
	fmt.Fprintf(env.stderr, "vllm-triage: there is no subcommand %q\n\n", name)
	usage(env.stderr)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Usage: vllm-triage COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-8s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\nEvery command takes --help.\n")
}

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// flags is a flag set whose help says what the command does and what its arguments are.
func flags(env environment, name, arguments, about string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // parse prints.
	fs.Usage = func() {
		fmt.Fprintf(env.stdout, "Usage: vllm-triage %s [flags] %s\n\n%s\n\nFlags:\n", name, arguments, about)
		fs.SetOutput(env.stdout)
		fs.PrintDefaults()
		fs.SetOutput(io.Discard)
	}
	return fs
}

// parse reads flags that may stand before and after the arguments, and returns the arguments.
func parse(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, &usageError{err}
		}
		if fs.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
}
