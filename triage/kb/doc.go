// Package kb is the knowledge of vllm-triage as data: which signals exist and under which names (signals.yaml), and the
// causes with their evidence, next steps and executed examples (causes/*.yaml). It is embedded in the binary; a directory
// given by the operator overrides or adds files.
package kb
