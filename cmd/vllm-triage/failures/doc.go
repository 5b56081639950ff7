// Package failures holds one test for each failure that bots of this kind have met in the field, by its number in the list
// that the product was designed against. Each test runs the whole service: a real store, real endpoints, the real Slack
// client against a fake workspace.
package failures
