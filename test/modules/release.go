package modules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// Prepare sets that version in the requirements of the published modules on each other,
// also in go.work, and returns the tags that publish it: one per module, all on
// the commit that has this change. The version is a canonical semantic
// version with a leading "v".
func Prepare(root, version string) (tags []string, err error) {
	if semver.Canonical(version) != version {
		return nil, fmt.Errorf("%q: want a version like v1.2.3", version)
	}
	published, err := Published(root)
	if err != nil {
		return nil, err
	}
	work, err := parseWork(root)
	if err != nil {
		return nil, err
	}
	for _, module := range published {
		for sibling, old := range module.siblings(published) {
			err := errors.Join(
				module.File.AddRequire(sibling, version),
				work.DropReplace(sibling, old),
				work.AddReplace(sibling, version, dirOf(sibling, published), ""),
			)
			if err != nil {
				return nil, err
			}
		}
		if err := module.write(filepath.Join(root, filepath.FromSlash(module.Dir))); err != nil {
			return nil, err
		}
		tags = append(tags, module.Tag(version))
	}
	work.Cleanup()
	return tags, os.WriteFile(filepath.Join(root, workFile), modfile.Format(work.Syntax), 0o600)
}

// dirOf returns the directory of the module with that path, as a replacement
// names it.
func dirOf(modulePath string, published []Module) string {
	for _, module := range published {
		if module.Path == modulePath {
			return "./" + module.Dir
		}
	}
	return ""
}

// Tag is the Git tag that publishes a version of the module
// (https://go.dev/ref/mod#vcs-version).
func (m Module) Tag(version string) string {
	if m.Dir == "." {
		return version
	}
	return m.Dir + "/" + version
}
