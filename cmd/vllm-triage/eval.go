package main

import (
	"context"
	"encoding/json"
	"fmt"

	"vllm-triage/triage/eval"
	"vllm-triage/triage/eval/robust"
)

func runEval(ctx context.Context, env environment) error {
	set := flags(env, "eval", "DIR…", `Measure the engine on recorded incidents whose cause is known (truth.json).

DIR is a recording or a directory of recordings. Each firing webhook received 30 s or more after the fault began is one
case; a recording without one is asked ad hoc.`)
	asJSON := set.Bool("json", false, "print JSON")
	ablation := set.Bool("ablation", false, "also leave out each piece of evidence in turn (minutes)")
	robustness := set.Bool("robustness", false, "transform data and question in many ways instead, and print a Markdown table (minutes)")
	failures := set.Bool("failures", false, "with --robustness: list each answer that a transformation made worse")
	dirKB := set.String("knowledge", "", "directory with causes and signals that override or add to the built-in ones")
	dirs, err := parse(set, env.args)
	if err != nil {
		return err
	}
	if len(dirs) == 0 {
		return usagef("name a directory of recordings, for example triage/testdata/incidents")
	}
	base, err := loadKnowledge(*dirKB)
	if err != nil {
		return err
	}
	recs, err := eval.LoadRecordings(dirs...)
	if err != nil {
		return err
	}
	if *robustness {
		table := robust.Run(ctx, base, recs, robust.Options{Progress: func(v robust.Variant) {
			fmt.Fprintf(env.stderr, "%s: %s %s\n", v.Group, v.Name, v.Detail)
		}})
		switch {
		case *asJSON:
			err = json.NewEncoder(env.stdout).Encode(table)
		case *failures:
			err = table.WriteFailures(env.stdout)
		default:
			err = table.WriteMarkdown(env.stdout)
		}
		return err
	}
	var cases []eval.Case
	for _, r := range recs {
		cases = append(cases, r.Cases()...)
	}
	all := evaluation{Result: eval.Run(ctx, base, cases, eval.Options{})}
	all.Calibration = eval.CrossValidate(all.Result)
	if *ablation {
		a := eval.Ablate(ctx, base, cases, eval.Options{})
		all.Ablation = &a
	}
	if *asJSON {
		return json.NewEncoder(env.stdout).Encode(all)
	}
	return all.write(env)
}

// evaluation is everything that eval measures.
type evaluation struct {
	eval.Result
	Calibration eval.CrossValidation `json:"calibration"`
	Ablation    *eval.Ablation       `json:"ablation,omitempty"`
}

func (e evaluation) write(env environment) error {
	if err := e.WriteTable(env.stdout); err != nil {
		return err
	}
	fmt.Fprintln(env.stdout)
	if err := e.Calibration.WriteTable(env.stdout); err != nil || e.Ablation == nil {
		return err
	}
	fmt.Fprintln(env.stdout)
	return e.Ablation.WriteTable(env.stdout)
}
