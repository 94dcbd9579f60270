package hypershift

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"
)

// The oldest releases that HyperShift accepts, whatever its operator states.
const (
	oldestMinor = 14
	// fiveOffset is the minor version of 4.y that 5.0 counts as.
	fiveOffset = 23
)

// Supported are the minor versions that the hypershift-operator supports, such as "4.19".
type Supported []string

// maxSupported bounds the text with the supported versions, in bytes.
const maxSupported = 64 << 10

// ParseSupported parses the key supported-versions of the ConfigMap of the operator, at most 64 KiB.
func ParseSupported(text string) (Supported, error) {
	if len(text) > maxSupported {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), maxSupported)
	}
	var stated struct {
		Versions []string `json:"versions"`
	}
	if err := json.Unmarshal([]byte(text), &stated); err != nil {
		return nil, fmt.Errorf("it cannot be parsed: %w", err)
	}
	if newest(stated.Versions) == 0 {
		return nil, errors.New("it lists no versions")
	}
	return stated.Versions, nil
}

// Contains reports whether the minor version of a release is listed.
func (s Supported) Contains(version semver.Version) bool {
	return slices.Contains(s, fmt.Sprintf("%d.%d", version.Major, version.Minor))
}

// Refusal is a rule by which HyperShift does not accept a release.
type Refusal string

// The refusals, in the order in which HyperShift applies them (IsValidReleaseVersion).
const (
	RefusalMajor     Refusal = "UnsupportedMajor"
	RefusalTooOld    Refusal = "TooOld"
	RefusalDowngrade Refusal = "MinorDowngrade"
	RefusalSDN       Refusal = "OpenShiftSDN"
	RefusalTooNew    Refusal = "TooNew"
	RefusalMinimum   Refusal = "BelowMinimum"
	// RefusalControlPlane is about a NodePool alone.
	RefusalControlPlane Refusal = "AfterControlPlane"
)

// Refuses returns the rule by which HyperShift rejects an update of the control plane to a release; empty if it
// accepts the update. Without supported versions, no release is too new. HyperShift accepts an earlier patch and
// an update that skips minor versions.
func Refuses(h *HostedCluster, from, to semver.Version, supported Supported) Refusal {
	if h.Unvalidated() {
		return ""
	}
	present, comparable := normalize(from)
	target, known := normalize(to)
	switch {
	case !known || !comparable:
		return RefusalMajor
	case target.LT(semver.Version{Major: 4, Minor: 8}):
		return RefusalTooOld
	case target.Minor < present.Minor:
		return RefusalDowngrade
	case h.Spec.Networking.NetworkType == "OpenShiftSDN" && target.Minor > present.Minor:
		return RefusalSDN
	case len(supported) > 0 && target.Minor > newest(supported):
		return RefusalTooNew
	case target.Minor < oldestMinor:
		return RefusalMinimum
	}
	return ""
}

// RefusesPool returns the rule by which HyperShift rejects a release for a NodePool of a version, as in its
// condition ValidReleaseImage; empty if it accepts the release. These are the rules of Refuses, and no minor
// version may be after the limit, which is [HostedCluster.PoolLimit] (hypershift-operator
// controllers/nodepool/nodepool_controller.go, getReleaseImage).
func RefusesPool(h *HostedCluster, from, limit, to semver.Version, supported Supported) Refusal {
	if refusal := Refuses(h, from, to, supported); refusal != "" || h.Unvalidated() {
		return refusal
	}
	most, known := normalize(limit)
	target, _ := normalize(to)
	switch {
	case !known:
		return RefusalMajor
	case target.Minor > most.Minor:
		return RefusalControlPlane
	}
	return ""
}

// PoolLimit is the version whose minor version no NodePool may exceed: the version of the newest history entry
// that has a completion time, even if another update superseded it, else the version of the requested release;
// empty if it is unknown (getHostedClusterVersion).
func (h *HostedCluster) PoolLimit() string {
	if h.Status.Version == nil {
		return ""
	}
	for _, past := range h.Status.Version.History {
		if past.CompletionTime != nil {
			return past.Version
		}
	}
	return h.VersionOf(h.Spec.Release.Image)
}

// Unvalidated reports whether HyperShift accepts every release, for the control plane and the NodePools.
func (h *HostedCluster) Unvalidated() bool {
	_, unvalidated := h.Annotations[AnnotationUnvalidated]
	return unvalidated
}

// IsVersionRefusal reports, by its message, whether a condition ValidReleaseImage is False because of the version
// of a release: another request is then evaluated anew. An image that cannot be pulled or read is another cause.
func IsVersionRefusal(message string) bool {
	return slices.ContainsFunc([]string{
		"releases before 4.8 are not supported", "y-stream downgrade from ", "y-stream upgrade from ", "cannot use OpenShiftSDN with OCP version",
		"cannot use OVNKubernetes with OCP version", "the latest version supported is: ", "the minimum version supported for platform ",
	}, func(text string) bool { return strings.Contains(message, text) })
}

// RefusedVersion is the version of a release that a condition ValidReleaseImage refuses because of it, by its message: the last one
// that the message quotes. It is false for what cannot be pulled or read.
func RefusedVersion(message string) (string, bool) {
	quoted := regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(message, -1)
	if !IsVersionRefusal(message) || len(quoted) == 0 {
		return "", false
	}
	return quoted[len(quoted)-1][1], true
}

// Multi is the architecture of a release for all architectures.
const Multi = "Multi"

// PayloadHas reports whether the requested release has the architecture of a pool; true if the architecture of the
// release is unknown. HyperShift stops the reconciliation of a pool whose architecture the release lacks
// (validateHCPayloadSupportsNodePoolCPUArch).
func (h *HostedCluster) PayloadHas(pool *NodePool) bool {
	return h.Status.PayloadArch == "" || h.Status.PayloadArch == Multi || strings.EqualFold(h.Status.PayloadArch, pool.Architecture())
}

// ChecksArchitecture reports whether HyperShift compares the architecture of the pool with the release's, which it
// does if it supports the architecture on the platform (nodepool_controller.go, isArchAndPlatformSupported at
// 3ee9615); known is false for a platform that this program does not know.
func (p *NodePool) ChecksArchitecture() (checks, known bool) {
	supported, known := map[string][]string{
		"AWS": {"amd64", "arm64"}, "Azure": {"amd64", "arm64"}, "GCP": {"amd64", "arm64"}, "None": {"amd64", "arm64"},
		"Agent": {"amd64", "arm64", "ppc64le"}, "KubeVirt": {"amd64", "s390x"}, "OpenStack": {"amd64"}, "PowerVS": {"ppc64le"}, "IBMCloud": nil,
	}[p.Spec.Platform.Type]
	return slices.Contains(supported, p.Architecture()), known
}

// RHEL10 is the name of an OS stream that releases have from 5.0 on.
const RHEL10 = "rhel-10"

// RefusesStream returns why HyperShift rejects spec.osImageStream of the pool for a release, as a clause; empty if
// it accepts the stream, for a runtime other than runc (osstream.go and rhel_stream.go at 3ee9615, GetRHELStream).
func (p *NodePool) RefusesStream(to semver.Version) string {
	switch stream := p.Spec.OSImageStream.Name; {
	case stream == "" || stream == "rhel-9" || stream == RHEL10 && to.Major >= 5:
		return ""
	case stream == RHEL10:
		return "the stream rhel-10 requires a release from 5.0 on"
	default:
		return fmt.Sprintf("HyperShift knows the streams rhel-9 and rhel-10, not %q", stream)
	}
}

// MayHaveRunc reports whether ConfigMaps of the pool may configure runc, which HyperShift refuses with the stream rhel-10. They
// do not where its nodes have the stream.
func (p *NodePool) MayHaveRunc() bool {
	return p.Spec.OSImageStream.Name == RHEL10 && len(p.Spec.Config) > 0 && p.Status.OSImageStream.Name != RHEL10
}

// Architecture is the architecture of the pool's nodes.
func (p *NodePool) Architecture() string { return cmp.Or(p.Spec.Arch, "amd64") }

// Skipped is how many minor versions an update leaves out; 0 for a downgrade and for versions that
// cannot be compared.
func Skipped(from, to semver.Version) uint64 {
	present, comparable := normalize(from)
	target, known := normalize(to)
	if !comparable || !known || target.Minor <= present.Minor+1 {
		return 0
	}
	return target.Minor - present.Minor - 1
}

// normalize counts 5.x as 4.(23+x), as HyperShift does; false for another major version.
func normalize(v semver.Version) (semver.Version, bool) {
	if v.Major == 5 {
		v.Major, v.Minor = 4, v.Minor+fiveOffset
	}
	return v, v.Major == 4
}

// newest is the newest minor version; 0 where there is none.
func newest(supported Supported) uint64 {
	var most uint64
	for _, each := range supported {
		if parsed, err := semver.ParseTolerant(each); err == nil {
			normalized, _ := normalize(parsed)
			most = max(most, normalized.Minor)
		}
	}
	return most
}

// Step is one update on the way of a hosted cluster to a release.
type Step struct {
	// Pool is the NodePool that is updated; empty for the control plane.
	Pool     string
	From, To semver.Version
}

// Running is the version of the oldest nodes of a NodePool.
type Running struct {
	Pool    string
	Version semver.Version
}

// Order returns the updates of a hosted cluster along the releases of a path, with the control plane first,
// because its NodePools must not be newer. A pool is updated as rarely as its skew permits: before the control
// plane would leave it behind by more than [MaxSkew] minor versions, and after the last update of the control
// plane. HyperShift updates a pool across minor versions at once.
func Order(path []semver.Version, pools []Running) []Step {
	var steps []Step
	present := map[string]semver.Version{}
	for _, each := range pools {
		present[each.Pool] = each.Version
	}
	follow := func(to semver.Version, due func(semver.Version) bool) {
		for _, each := range pools {
			if from := present[each.Pool]; from.LT(to) && due(from) {
				steps = append(steps, Step{Pool: each.Pool, From: from, To: to})
				present[each.Pool] = to
			}
		}
	}
	for i := 1; i < len(path); i++ {
		from, to := path[i-1], path[i]
		follow(from, func(pool semver.Version) bool { return Skewed(pool, to) == SkewTooOld })
		steps = append(steps, Step{From: from, To: to})
	}
	if len(path) > 0 {
		follow(path[len(path)-1], func(semver.Version) bool { return true })
	}
	return steps
}

// MaxSkew is how many minor versions a NodePool may be older than its control plane.
const MaxSkew = 3

// Skew compares a NodePool with the control plane.
type Skew string

// The relations. HyperShift reports the unsupported ones in the condition SupportedVersionSkew of the
// NodePool, and enforces nothing (ValidateVersionSkew).
const (
	// SkewNone is a supported pool that supports the next minor update of the control plane as well.
	SkewNone Skew = ""
	// SkewAtLimit is a supported pool that is MaxSkew minor versions older.
	SkewAtLimit Skew = "AtLimit"
	// SkewNewer is a pool with a later version, even a later patch.
	SkewNewer Skew = "Newer"
	// SkewTooOld is a pool that is more than MaxSkew minor versions older.
	SkewTooOld Skew = "TooOld"
	// SkewUnknown is a pool or a control plane of another major version than 4 and 5.
	SkewUnknown Skew = "Unknown"
)

// Skewed compares the version of a NodePool with the version of its control plane.
func Skewed(pool, controlPlane semver.Version) Skew {
	older, known := normalize(pool)
	newer, comparable := normalize(controlPlane)
	switch {
	case !known || !comparable:
		return SkewUnknown
	case older.GT(newer):
		return SkewNewer
	case older.Minor+MaxSkew < newer.Minor:
		return SkewTooOld
	case older.Minor+MaxSkew == newer.Minor:
		return SkewAtLimit
	}
	return SkewNone
}

// Pause is the effect of spec.pausedUntil of a HostedCluster or a NodePool at a time.
type Pause struct {
	// Active is true while HyperShift changes nothing on behalf of the object.
	Active bool
	// Until is when an active pause ends; zero for one that ends when the field is removed.
	Until time.Time
}

// PausedUntil is the effect of spec.pausedUntil at a time: a boolean in any form that strconv.ParseBool
// reads, such as "True" or "1", else a time in RFC 3339. Any other text is an error, and pauses nothing
// (hypershift support/util/pausereconcile.go, ProcessPausedUntilField).
func PausedUntil(text string, now time.Time) (Pause, error) {
	if text == "" {
		return Pause{}, nil
	}
	if active, err := strconv.ParseBool(text); err == nil {
		return Pause{Active: active}, nil
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Pause{}, fmt.Errorf("%q is neither a boolean nor a time in RFC 3339", text)
	}
	if !now.Before(until) {
		return Pause{}, nil
	}
	return Pause{Active: true, Until: until}, nil
}
