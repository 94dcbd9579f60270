package modules

import (
	"fmt"
	"slices"

	"golang.org/x/mod/semver"
)

// Misaligned is a module that two modules of the repository require with
// different versions. What depends on it is compiled twice.
type Misaligned struct {
	// Dir is the module with the lower version.
	Dir string
	// Path and Version are the requirement that it must have instead.
	Path, Version string
}

// String describes the violation.
func (m Misaligned) String() string {
	return fmt.Sprintf("%s/go.mod: another module of the repository requires %s %s; run `make tidy`", m.Dir, m.Path, m.Version)
}

// Align returns the requirements that several of the modules have, but not with
// the same version.
func Align(all []Module) []Misaligned {
	newest := map[string]string{}
	for _, module := range all {
		for _, require := range module.File.Require {
			if path, version := require.Mod.Path, require.Mod.Version; semver.Compare(version, newest[path]) > 0 {
				newest[path] = version
			}
		}
	}
	var misaligned []Misaligned
	for _, module := range all {
		for _, require := range module.File.Require {
			if version := newest[require.Mod.Path]; version != require.Mod.Version {
				misaligned = append(misaligned, Misaligned{Dir: module.Dir, Path: require.Mod.Path, Version: version})
			}
		}
	}
	slices.SortFunc(misaligned, func(a, b Misaligned) int { return slices.Compare([]string{a.Dir, a.Path}, []string{b.Dir, b.Path}) })
	return misaligned
}
