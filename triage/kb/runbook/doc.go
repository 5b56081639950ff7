// Package runbook holds one page for every bottleneck and trigger: what it means, how to confirm it, what to do step by
// step with a check for each step, how to know that it is over, what not to do, and how to prevent it.
//
// A page is a Markdown file, <lang>/<id>.md, the same ids and the same step ids in every language. The numbers of an
// incident stand in the text as placeholders:
//
//	{{num "kv_usage" "during"}}   a signal's value, "before" or "during"; formatted by the caller, unit included
//	{{scope}} {{where}} {{since}} the model, the replicas, the onset
//	{{matchers}}                  label matchers, inside the braces of a PromQL selector only
//	{{with_incident}} … {{end}}   a passage that vanishes without an incident, or when a value in it is not known
//
// Values arrive from labels and are untrusted. They never pass through the Markdown parser: a private-use character
// holds their place and is replaced by the escaped value in the finished HTML.
//
// Load validates everything that can be checked without a server: front matter, sections, anchors, one check for each
// step, links, that every cause has a page, and that each PromQL fence parses and asks for metrics that vLLM exports, in
// the way their type allows. Overlay lays a site's own pages over the shipped ones.
package runbook
