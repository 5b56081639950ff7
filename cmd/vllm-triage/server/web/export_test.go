package web

import "maps"

// Words are the page texts of a language.
func Words(language string) map[string]string { return maps.Clone(catalogues()[language].own) }
