package main

import (
	"context"
	"fmt"
	"runtime"

	"vllm-triage/triage/kb"
)

func runVersion(_ context.Context, env environment) error {
	fs := flags(env, "version", "", "Print the version of the program and of its knowledge base.")
	if _, err := parse(fs, env.args); err != nil {
		return err
	}
	base := kb.Default()
	_, err := fmt.Fprintf(env.stdout, "vllm-triage %s (%s, knowledge %s: %d causes, %d signals)\n",
		version, runtime.Version(), base.Hash, len(base.Causes), len(base.Signals))
	return err
}
