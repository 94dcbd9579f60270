package mirrors_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/mirrors"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The paths of the objects.
const (
	infrastructure = "/apis/config.openshift.io/v1/infrastructures/cluster"
	digestSets     = "/apis/config.openshift.io/v1/imagedigestmirrorsets"
	tagSets        = "/apis/config.openshift.io/v1/imagetagmirrorsets"
	sourcePolicies = "/apis/operator.openshift.io/v1alpha1/imagecontentsourcepolicies"
)

// The policies.
const (
	unset = ""
	never = "NeverContactSource"
	allow = "AllowContactingSource"
)

const source = "quay.io/openshift"

type fields = map[string]any

// world is what an API server has, by path. A nil object may not be read; a path that is absent is not served.
type world map[string]fields

func (w world) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	object, known := w[request.URL.Path]
	code := http.StatusOK
	switch {
	case !known:
		code, object = http.StatusNotFound, failure(metav1.StatusReasonNotFound, http.StatusNotFound)
	case object == nil:
		code, object = http.StatusForbidden, failure(metav1.StatusReasonForbidden, http.StatusForbidden)
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	_ = json.NewEncoder(out).Encode(object) // the client reports what is missing
}

func failure(reason metav1.StatusReason, code int) fields {
	return fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": string(reason)}
}

// with is a cluster with other objects than none.
func with(other world) world {
	all := world{
		infrastructure: topology("HighlyAvailable"),
		digestSets:     digests(), tagSets: tags(), sourcePolicies: policies(),
	}
	maps.Copy(all, other)
	return all
}

func topology(mode string) fields {
	return fields{
		"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": fields{"name": "cluster"},
		"status": fields{"controlPlaneTopology": mode},
	}
}

// set is one object with its entries.
type set struct {
	name    string
	entries []fields
}

func of(name string, entries ...fields) set { return set{name: name, entries: entries} }

func entry(source, policy string, mirrors ...string) fields {
	made := fields{"source": source}
	if policy != unset {
		made["mirrorSourcePolicy"] = policy
	}
	if len(mirrors) > 0 {
		made["mirrors"] = mirrors
	}
	return made
}

func list(apiVersion, kind, field string, sets []set) fields {
	items := []fields{}
	for _, each := range sets {
		items = append(items, fields{
			"apiVersion": apiVersion, "kind": kind, "metadata": fields{"name": each.name},
			"spec": fields{field: each.entries},
		})
	}
	return fields{"apiVersion": apiVersion, "kind": kind + "List", "metadata": fields{}, "items": items}
}

func digests(sets ...set) fields {
	return list("config.openshift.io/v1", "ImageDigestMirrorSet", "imageDigestMirrors", sets)
}

func tags(sets ...set) fields {
	return list("config.openshift.io/v1", "ImageTagMirrorSet", "imageTagMirrors", sets)
}

func policies(sets ...set) fields {
	return list("operator.openshift.io/v1alpha1", "ImageContentSourcePolicy", "repositoryDigestMirrors", sets)
}

// many are two contradictory sets about so many sources.
func many(count int) fields {
	one, other := of("a"), of("b")
	for i := range count {
		name := fmt.Sprintf("r%04d.example.com", i)
		one.entries, other.entries = append(one.entries, entry(name, never, "m")), append(other.entries, entry(name, allow, "m"))
	}
	return digests(one, other)
}

func result(name string, outcome preflight.Outcome, reason string) map[string]checktest.Result {
	return map[string]checktest.Result{name: {Outcome: outcome, Reason: reason}}
}

func TestMirrorSets(t *testing.T) {
	const check, named = "MirrorSets", "MirrorSets-quay.io-openshift"
	pass := result(check, preflight.Pass, "AsExpected")
	unread := result(check, preflight.Unknown, "Forbidden")
	contradictory := result(named, preflight.Warn, "ContradictoryMirrors")
	both := maps.Clone(contradictory)
	maps.Copy(both, unread)
	for name, tc := range map[string]struct {
		reason  string
		world   world
		want    map[string]checktest.Result
		message []string
		remedy  []string
	}{
		"None": {reason: "a cluster may have no mirror sets", world: with(nil), want: pass, message: []string{"0 mirror sets"}},
		"Same": {
			reason: "several sets with one policy are merged", want: pass, message: []string{"3 mirror sets"},
			world: with(world{
				digestSets: digests(of("a", entry(source, never, "m")), of("b", entry(source, never, "n"))),
				tagSets:    tags(of("a", entry(source, never, "m"))),
			}),
		},
		"Default": {
			reason: "an unset policy is AllowContactingSource", want: pass,
			world: with(world{digestSets: digests(of("a", entry(source, unset, "m")), of("b", entry(source, allow, "n")))}),
		},
		"Objects": {
			reason: "two objects of one kind contradict each other", want: contradictory,
			world: with(world{digestSets: digests(of("a", entry(source, never, "m")), of("b", entry(source, unset, "n")))}),
			message: []string{
				`mirrorSourcePolicy of source "quay.io/openshift" is AllowContactingSource in ImageDigestMirrorSet "b", and NeverContactSource in ImageDigestMirrorSet "a"`,
				"renders no configuration for the pools",
			},
			remedy: []string{"Set the same mirrorSourcePolicy", "oc edit imagedigestmirrorset/b imagedigestmirrorset/a"},
		},
		"Kinds": {
			reason: "MCO compares digest and tag mirrors, although registries.conf has them apart", want: contradictory,
			world:   with(world{digestSets: digests(of("a", entry(source, allow, "m"))), tagSets: tags(of("a", entry(source, never, "m")))}),
			message: []string{`ImageDigestMirrorSet "a"`, `ImageTagMirrorSet "a"`},
			remedy:  []string{"oc edit imagedigestmirrorset/a imagetagmirrorset/a"},
		},
		"ContentSourcePolicy": {
			reason: "an ImageContentSourcePolicy allows contacting the source", want: contradictory,
			world: with(world{
				digestSets:     digests(of("a", entry(source, never, "m"))),
				sourcePolicies: policies(of("old", entry(source, unset, "m"))),
			}),
			message: []string{`AllowContactingSource in ImageContentSourcePolicy "old"`},
		},
		"ContentSourcePolicyField": {
			reason: "MCO does not know a policy of an ImageContentSourcePolicy, which an archive may have", want: pass,
			world: with(world{
				digestSets:     digests(of("a", entry(source, allow, "m"))),
				sourcePolicies: policies(of("old", entry(source, never, "m"))),
			}),
		},
		"OneObject": {
			reason: "one object contradicts itself", want: contradictory, remedy: []string{"oc edit imagedigestmirrorset/a\n"},
			world: with(world{digestSets: digests(of("a", entry(source, never, "m"), entry(source, allow, "n")))}),
		},
		"NoMirrors": {
			reason: "MCO compares the policies before it drops entries without mirrors", want: contradictory,
			world: with(world{digestSets: digests(of("a", entry(source, never)), of("b", entry(source, allow, "m")))}),
		},
		"MirrorIsSource": {
			reason: "an entry that only repeats its source is compared as well", want: contradictory,
			world: with(world{digestSets: digests(of("a", entry(source, allow, source)), of("b", entry(source, never, "m")))}),
		},
		"ClosedMirror": {
			reason: "MCO rejects a closed source among its own mirrors", want: result(named, preflight.Warn, "ClosedSourceIsMirror"),
			world:   with(world{tagSets: tags(of("a", entry(source, never, "m", source)))}),
			message: []string{`NeverContactSource in ImageTagMirrorSet "a", although the source is among its mirrors`},
			remedy:  []string{"oc edit imagetagmirrorset/a"},
		},
		"OpenMirror": {
			reason: "the source may be among the mirrors where it may be contacted",
			world:  with(world{digestSets: digests(of("a", entry(source, allow, source, "m")))}), want: pass,
		},
		"OtherSources": {
			reason: "sources are compared by their exact text, also where one contains the other", want: pass,
			world: with(world{digestSets: digests(of("a", entry(source, never, "m")),
				of("b", entry("quay.io", allow, "m"), entry("Quay.io/openshift", allow, "m"), entry(source+"/", allow, "m")))}),
		},
		"UnknownPolicy": {
			reason: "MCO compares texts, also of a policy that it does not know", want: contradictory, message: []string{"Later in"},
			world: with(world{digestSets: digests(of("a", entry(source, "Later\x1b[2J", "m")), of("b", entry(source, allow, "m")))}),
		},
		"Forbidden": {
			reason: "what may not be read may contradict", world: with(world{tagSets: nil}), want: unread,
			message: []string{"imagetagmirrorsets.config.openshift.io"},
		},
		"ForbiddenOther": {reason: "what was read is reported besides", world: with(world{
			sourcePolicies: nil,
			digestSets:     digests(of("a", entry(source, never, "m"), entry(source, allow, "n"))),
		}), want: both},
		"Malformed": {reason: "an object that cannot be decoded may contradict", world: with(
			world{tagSets: tags(set{name: "a", entries: []fields{{"source": fields{}}}})}), want: result(check, preflight.Unknown, "Error")},
		"Control": {
			reason: "a source is text from outside", want: result("MirrorSets-evil---2J-rm--rf", preflight.Warn, "ContradictoryMirrors"),
			message: []string{`source "evil rm -rf"`},
			world: with(world{
				sourcePolicies: policies(of("a", entry("evil\u202e\x1b[2J\nrm -rf", unset, "m"))),
				digestSets:     digests(of("b", entry("evil\u202e\x1b[2J\nrm -rf", never, "m"))),
			}),
		},
		"Unserved": {
			reason: "a release without the kinds has no mirror sets", world: world{infrastructure: topology("HighlyAvailable")},
			want: pass,
		},
		"Hosted": {
			reason: "no MachineConfigPool is in the cluster", world: world{infrastructure: topology("External"), digestSets: many(2)},
			want: result(check, preflight.Skipped, "HyperShift"),
		},
		"Plain": {reason: "a cluster that is not OpenShift", world: world{}, want: result(check, preflight.Skipped, "PlainKubernetes")},
	} {
		t.Run(name, func(t *testing.T) {
			findings := run(t, tc.world)
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s\nin full: %+v", tc.reason, diff, findings)
			}
			checktest.Contains(t, tc.reason, checktest.Messages(findings), tc.message)
			checktest.Contains(t, tc.reason, checktest.Remedies(findings), tc.remedy)
		})
	}
}

func run(t *testing.T, w world) []finding.Finding {
	t.Helper()
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	return checktest.Run(t, mirrors.Check(), checktest.Connect(&rest.Config{Host: server.URL}).Snapshot(t),
		checktest.Update(t, "4.18.3", "4.18.9"))
}

// What many objects, or long texts, contradict is bounded.
func TestMirrorSetsBounded(t *testing.T) {
	findings := run(t, with(world{digestSets: many(1000)}))
	if last := findings[len(findings)-1]; len(findings) != 51 || last.Reason != "AndMore" ||
		!strings.Contains(last.Message, "950 more findings") {
		t.Errorf("%d findings of 1000 sources, the last one %+v", len(findings), last)
	}
	long := strings.Repeat("x", 10_000)
	all := []set{of("never", entry(long, never, "m"))}
	for i := range 2000 {
		all = append(all, of(fmt.Sprint("allow", i), entry(long, allow, "m")))
	}
	findings = run(t, with(world{digestSets: digests(all...)}))
	if len(findings) != 1 || len(findings[0].Message) > 2000 || len(findings[0].Name) > finding.MaxName ||
		len(findings[0].Objects) > finding.MaxObjects {
		t.Fatalf("a long source of many sets: %d findings, a message of %d bytes", len(findings), len(findings[0].Message))
	}
	checktest.Contains(t, "the message", findings[0].Message, []string{"and 1995 more", `NeverContactSource in ImageDigestMirrorSet "never"`})
}
