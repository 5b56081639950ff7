package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

func runBackup(ctx context.Context, env environment) (err error) {
	fs := flags(env, "backup", "FILE", `Copy the SQLite database to a new file. The copy is consistent, and the service may go on meanwhile.

To restore it, stop the service and put the file where "storage" in the configuration says. PostgreSQL has pg_dump.`)
	path := fs.String("config", defaultConfig, "configuration `file`")
	args, err := parse(fs, env.args)
	if err != nil {
		return err
	}
	if len(args) != 1 {
		return usagef("name one file to write")
	}
	c, err := loadConfig(env, *path)
	if err != nil {
		return err
	}
	s, err := existingStore(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Backup(ctx, args[0]); err != nil {
		return err
	}
	info, err := os.Stat(args[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.stdout, "%s: %.1f MB\n", args[0], float64(info.Size())/1e6)
	return err
}
