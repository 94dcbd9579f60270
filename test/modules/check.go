package modules

import (
	"fmt"
	"slices"
)

// toolsDir has the module that pins programs.
const toolsDir = "test/tools"

// Check returns what prevents the modules of the repository in root from being
// published together, one violation per entry:
//
//   - a module that is neither in go.work nor test/tools,
//   - a published module with a replace or exclude directive, which the Go tool
//     refuses to install by name,
//   - a required sibling whose version go.work does not replace,
//   - siblings that are required with different versions.
func Check(root string) ([]string, error) {
	all, err := All(root)
	if err != nil {
		return nil, err
	}
	published, err := Published(root)
	if err != nil {
		return nil, err
	}
	replaced, err := replacedByWork(root)
	if err != nil {
		return nil, err
	}
	violations := unlisted(all, published)
	versions := map[string]bool{}
	for _, module := range published {
		if len(module.File.Replace) > 0 || len(module.File.Exclude) > 0 {
			violations = append(violations, fmt.Sprintf("%s/go.mod: a published module must have no replace or exclude directive", module.Dir))
		}
		for sibling, version := range module.siblings(published) {
			versions[version] = true
			if !replaced[sibling+"@"+version] {
				violations = append(violations, fmt.Sprintf("%s/go.mod requires %s %s, which %s does not replace", module.Dir, sibling, version,
					workFile))
			}
		}
	}
	if len(versions) > 1 {
		violations = append(violations, fmt.Sprintf("the published modules require each other with %d different versions, want one",
			len(versions)))
	}
	slices.Sort(violations)
	return violations, nil
}

// unlisted returns a violation for each module that is not published, but
// should be.
func unlisted(all, published []Module) []string {
	var violations []string
	for _, module := range all {
		listed := slices.ContainsFunc(published, func(other Module) bool { return other.Dir == module.Dir })
		if !listed && module.Dir != toolsDir {
			violations = append(violations, fmt.Sprintf("%s: the module in %s is not listed", workFile, module.Dir))
		}
	}
	return violations
}

// replacedByWork returns "path@version" of each replacement of go.work.
func replacedByWork(root string) (map[string]bool, error) {
	work, err := parseWork(root)
	if err != nil {
		return nil, err
	}
	replaced := map[string]bool{}
	for _, replace := range work.Replace {
		replaced[replace.Old.Path+"@"+replace.Old.Version] = true
	}
	return replaced, nil
}

// Version returns the version with which the modules require each other, which
// is the version to tag next.
func Version(published []Module) string {
	for _, module := range published {
		for _, version := range module.siblings(published) {
			return version
		}
	}
	return ""
}
