package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// check is the check of cluster-foo-operator before an update. Administrators accept a
// finding by its name, so the name must not change between releases.
//
// Declare what Run reads from the cluster as Rules. They are the permissions of the
// Job in the manifest, which has no others.
func check() preflight.Check {
	return preflight.Check{
		Name:        "StorageDriver",
		Description: "The target is not an older minor version.",
		Timeout:     time.Minute,
		Run:         run,
	}
}

// run fails for an update to an older minor version: an older cluster-foo-operator may not
// be able to read what a newer one has stored. For any other update it is inconclusive,
// which never counts as a pass, until you replace its last lines by what requires the
// cluster: pass ctx to every request, report what you observe with t.Failf, and what
// resolves it with t.Remedyf and its commands with t.Commandf. Return the error of a failed
// request: the check is then inconclusive, too. A check that reports nothing has passed.
func run(_ context.Context, t *preflight.T) error {
	update := t.Update()
	from, err := minorVersion(update.From)
	if err != nil {
		return fmt.Errorf("version of the cluster %w", err)
	}
	to, err := minorVersion(update.To)
	if err != nil {
		return fmt.Errorf("version to update to %w", err)
	}
	if update.From == update.To {
		t.Skipf("the cluster already runs %s", update.To)
		return nil
	}
	if slices.Compare(to, from) < 0 {
		t.Reason("Downgrade")
		t.Failf("%s would replace the newer %s and may not be able to read what that has stored", update.To, update.From)
		t.Remedyf("Select a newer release.")
		t.Commandf("oc adm upgrade")
		return nil
	}
	t.Reason("NotWritten")
	t.Inconclusivef("the check StorageDriver is not written yet")
	t.Remedyf("Write it in cmd/storage-driver-preflight/check.go, then build its image again.")
	return nil
}

// minorVersion returns 4 and 21 for 4.21.3.
func minorVersion(version string) ([]int, error) {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d.", &major, &minor); err != nil {
		return nil, fmt.Errorf("%q: want a version like 4.21.3 (outside of a Job: --from 4.20.5 --to 4.21.3)", version)
	}
	return []int{major, minor}, nil
}
