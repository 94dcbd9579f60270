package cvo

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

type minor struct{ major, minor uint64 }

func minorOf(version semver.Version) minor { return minor{version.Major, version.Minor} }

func (m minor) String() string { return fmt.Sprintf("%d.%d", m.major, m.minor) }

func (m minor) before(other minor) bool {
	return m.major < other.major || (m.major == other.major && m.minor < other.minor)
}

// oldest is the first minor version whose CVO is known.
func oldest() minor { return minor{4, 14} }

func known(version string) (semver.Version, bool) {
	current, err := semver.Parse(version)
	return current, err == nil && !minorOf(current).before(oldest())
}

type change struct {
	// since is the first minor version that has it in all of its releases.
	since minor
	// partly are the minor versions where only some patch releases have it.
	partly []backport
}

// backport is a minor version in which a change was made or reverted after the first release.
type backport struct {
	minor minor
	// settled is the first patch version from which on all releases surely have the
	// change; zero where that is unknown.
	settled uint64
}

// in reports whether the CVO of a release has the change; certain is false where that depends on its patch version.
func (c change) in(current semver.Version) (has, certain bool) {
	for _, backport := range c.partly {
		if minorOf(current) == backport.minor {
			settled := backport.settled > 0 && current.Patch >= backport.settled
			return settled, settled
		}
	}
	return !minorOf(current).before(c.since), true
}

// previousRelease allows the rollback to the previous release within a minor
// version: pull request 996, in 4.15 before its first release (1008) and in 4.14
// since January 2024. In 4.16 it was reverted in July 2024 (1065) and restored in
// August (1077).
func previousRelease() change {
	return change{since: minor{4, 15}, partly: []backport{{minor: minor{4, 14}, settled: 12}, {minor: minor{4, 16}, settled: 10}}}
}

// noGiantHops is the precondition ClusterVersionGiantHop (pull request 1112).
func noGiantHops() change {
	return change{since: minor{4, 19}, partly: []backport{{minor: minor{4, 18}}}}
}

// majorFive makes ClusterVersionGiantHop accept updates from 4.y to 5.0 (pull request 1275).
func majorFive() change { return change{since: minor{4, 22}} }

// fromDesired makes ClusterVersionUpgradeable measure from status.desired, not
// from the last completed release, so that an update in progress can be
// retargeted within its minor version (pull request 1094, in 4.17 since the end of October
// 2024: 1095).
func fromDesired() change {
	return change{since: minor{4, 18}, partly: []backport{{minor: minor{4, 17}, settled: 5}}}
}

// acksOfDesired makes CVO judge the admin gates of its own release, not those of the
// last completed one (pkg/risk/adminack).
func acksOfDesired() change { return change{since: minor{4, 23}} }

// risksByName makes CVO evaluate each risk once for all updates, by its name. Before,
// it evaluated the risks of every update by the definitions of that update.
func risksByName() change { return change{since: minor{4, 22}} }

// EvaluatesRisksByName reports whether the CVO of a release evaluates one definition
// of a risk for all updates. It is true for a version that is not SemVer.
func EvaluatesRisksByName(version string) bool {
	current, err := semver.Parse(version)
	has, _ := risksByName().in(current)
	return err != nil || has
}

// adminGates is the first release with the ConfigMap admin-gates. They came with 4.9, and with 4.8.14.
func adminGates() semver.Version { return semver.MustParse("4.8.14") }

// HasAdminGates reports whether the CVO of a release reads the ConfigMap admin-gates.
func HasAdminGates(release semver.Version) bool {
	return release.GTE(adminGates()) || minor{4, 8}.before(minorOf(release))
}

// whileUpdating is the cause ClusterVersionUpdating of Upgradeable=False (pull request 1080).
func whileUpdating() change { return change{since: minor{4, 19}} }

// NamesGate reports whether CVO has a gate of this name: a cause of Upgradeable=False of
// ClusterVersion (pkg/risk/{adminack, overrides, updating, deletion, upgradeable}). The checks
// of these gates have the same names, in every release.
func NamesGate(name string) bool {
	switch name {
	case updating, "ClusterVersionOverrides", "ResourceDeletionInProgress", "AdminAckUnknown", "ClusterOperatorUpgradeableUnknown":
		return true
	}
	return strings.HasPrefix(name, "AdminAck-") || strings.HasPrefix(name, "ClusterOperatorUpgradeable-")
}

// updating is the gate that is closed while an update is in progress.
const updating = "ClusterVersionUpdating"

// MakesUpgradeable reports whether the CVO of a release makes Upgradeable=False of a gate. It
// is false for a version that is not SemVer.
func MakesUpgradeable(version, gate string) bool {
	release, err := semver.Parse(version)
	if err != nil || !NamesGate(gate) {
		return false
	}
	if gate == updating {
		has, _ := whileUpdating().in(release)
		return has
	}
	return true
}

// AllowsRetarget reports whether the CVO of a release lets an update in progress to
// its minor version be retargeted within that version in spite of Upgradeable=False.
// It is certain unless that depends on the patch version.
func AllowsRetarget(release semver.Version) (allowed, certain bool) {
	return fromDesired().in(release)
}

// AcksOf is the release whose admin gates CVO judges, while an update from the
// last completed release to the desired one is in progress.
func AcksOf(completed, desired semver.Version) semver.Version {
	if has, _ := acksOfDesired().in(desired); has {
		return desired
	}
	return completed
}

// patchDespiteOverrides makes CVO accept patch updates despite overrides (pull request
// 1314).
func patchDespiteOverrides() change { return change{since: minor{4, 22}} }

// OverridesBlockPatches reports whether the CVO of a release refuses patch updates
// while spec.overrides makes objects unmanaged, as it does up to 4.21. It is false
// for a version that is not SemVer.
func OverridesBlockPatches(version string) bool {
	current, ok := known(version)
	has, _ := patchDespiteOverrides().in(current)
	return ok && !has
}

// CompletedVersion is the release that CVO considers installed: the last completed
// one, else the first in status.history; empty where the history is.
func CompletedVersion(status configv1.ClusterVersionStatus) string {
	for _, past := range status.History {
		if past.State == configv1.CompletedUpdate {
			return past.Version
		}
	}
	if count := len(status.History); count > 0 {
		return status.History[count-1].Version
	}
	return ""
}
