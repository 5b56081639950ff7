package runbook

import "io/fs"

// ParsePage reads one file against the shipped vocabulary, so that fuzzing does not load the whole book each time.
func ParsePage(lang, id string, data []byte) (*Page, error) {
	return parsePage(lang, id, data, shippedVocabulary)
}

var shippedVocabulary = func() *vocabulary {
	v := newVocabulary()
	for name, add := range map[string]func([]byte) error{
		"metrics/vllm.txt":      v.addMetrics,
		"signals/catalogue.txt": v.addSignals,
	} {
		data, err := fs.ReadFile(embedded, name)
		if err == nil {
			err = add(data)
		}
		if err != nil {
			panic(err)
		}
	}
	return v
}()
