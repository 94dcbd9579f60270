package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxAge is the age of the newest green run of a level from which on the whole level runs.
const maxAge = 24 * time.Hour

// Scope is what a change has to run of a level before it lands.
type Scope struct {
	// Packages are those whose tests run.
	Packages []Package
	// Whole reports whether they are all packages of the level.
	Whole bool
	// Reason states what runs, and why, as a part of a sentence.
	Reason string
}

// ScopeOf returns the scope of a level for what differs from the commit of its newest green run. All
// of it runs where there is no such run, where it is too old, or where it is not known which tests a
// change concerns.
func ScopeOf(ctx context.Context, root string, level Level, all []Package, now time.Time) (Scope, error) {
	whole := func(why string) (Scope, error) {
		return Scope{Packages: all, Whole: true, Reason: "all tests: " + why}, nil
	}
	runs, err := readGreen(root)
	if err != nil {
		return Scope{}, err
	}
	last, ok := runs[level]
	if !ok {
		return whole("no green run of all is recorded in " + greenFile)
	}
	short := last.commit[:min(len(last.commit), 8)]
	if _, err := git(ctx, root, "merge-base", "--is-ancestor", last.commit, "HEAD"); err != nil {
		return whole(fmt.Sprintf("the commit %s of the last green run of all is not an ancestor of this one", short))
	}
	if age := now.Sub(last.time); age > maxAge || age < 0 {
		return whole(fmt.Sprintf("the last green run of all, at %s, was %s ago", short, age.Round(time.Hour)))
	}
	files, err := changes(ctx, root, last.commit)
	if err != nil {
		return Scope{}, err
	}
	folders, cause := foldersOf(files, all)
	if cause != "" {
		return whole(fmt.Sprintf("%s has changed since %s", cause, short))
	}
	switch level {
	case LevelRace:
		return Scope{Reason: "nothing, all were green at " + short}, nil
	case LevelRelease:
		return Scope{Packages: within(all, folders), Reason: "those that have changed themselves since " + short}, nil
	case LevelTest:
	}
	some := concerned(all, folders)
	return Scope{Packages: some, Reason: fmt.Sprintf("what needs no cluster, the smoke set, and %s: changed since %s: %s", count(some), short,
		summary(folders))}, nil
}

// within returns the packages in these folders.
func within(all []Package, folders []string) []Package {
	return slices.DeleteFunc(slices.Clone(all), func(p Package) bool { return !slices.Contains(folders, folderOf(p.Path)) })
}

// count is the number of packages with clusters.
func count(packages []Package) string {
	number := 0
	for _, p := range packages {
		if p.Cluster && !ofRelease(p) {
			number++
		}
	}
	if number == 1 {
		return "1 package with clusters"
	}
	return fmt.Sprintf("%d packages with clusters", number)
}

// summary names the first of these folders.
func summary(folders []string) string {
	const most = 5
	if len(folders) == 0 {
		return "no package"
	}
	slices.Sort(folders)
	if len(folders) > most {
		return fmt.Sprintf("%s and %d more packages", strings.Join(folders[:most], ", "), len(folders)-most)
	}
	return strings.Join(folders, ", ")
}
