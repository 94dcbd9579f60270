package imagestream_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/imagestream"
	"github.com/openshift/update-preflight/runner/payload"
)

const (
	images  = "/apis/config.openshift.io/v1/images/cluster"
	streams = "/apis/image.openshift.io/v1/namespaces/openshift/imagestreams/"
	digest  = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	release = "quay.io/openshift-release-dev/ocp-v4.0-art-dev" + digest
)

type fields = map[string]any

// world is what an API server has, by path. A nil object may not be read; a path that is absent has no object.
type world map[string]fields

// unserved is in a world whose server does not serve ImageStreams.
const unserved = "unserved"

func (w world) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	if _, ok := w[unserved]; ok && strings.HasPrefix(request.URL.Path, streams) {
		http.NotFound(out, request)
		return
	}
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

// allowing is the configuration with these registries; one that ends in "!" is insecure.
func allowing(registries ...string) world {
	list := []fields{}
	for _, each := range registries {
		domain, insecure := strings.CutSuffix(each, "!")
		list = append(list, fields{"domainName": domain, "insecure": insecure})
	}
	return world{images: fields{
		"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": fields{"name": "cluster"},
		"spec":   fields{"allowedRegistriesForImport": list},
		"status": fields{"internalRegistryHostname": "image-registry.openshift-image-registry.svc:5000"},
	}}
}

// having is the world with an ImageStream, by its parts.
func (w world) having(name string, parts fields) world {
	object := fields{"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": fields{"name": name, "namespace": "openshift"}}
	maps.Copy(object, parts)
	changed := maps.Clone(w)
	changed[streams+name] = object
	return changed
}

// without is the world in which an object may not be read, or that serves no ImageStreams.
func (w world) without(path string) world {
	changed := maps.Clone(w)
	changed[path] = nil
	return changed
}

func tag(name, image string) fields {
	return fields{"name": name, "from": fields{"kind": "DockerImage", "name": image}}
}

func tagged(tags ...fields) fields { return fields{"spec": fields{"tags": tags}} }

// stream is a manifest; parts are its fields.
func stream(t *testing.T, name string, parts fields) payload.Definition {
	t.Helper()
	object := fields{"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": fields{"name": name, "namespace": "openshift"}}
	maps.Copy(object, parts)
	manifest, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return payload.Definition{File: "streams.yaml", Namespace: "openshift", Name: name, Manifest: manifest}
}

func annotated(key string, tags ...fields) fields {
	made := tagged(tags...)
	made["metadata"] = fields{"name": "cli", "namespace": "openshift", "annotations": fields{key: "true"}}
	return made
}

func TestImageStreams(t *testing.T) {
	t.Parallel()
	const internal, other = "image-registry.openshift-image-registry.svc:5000/openshift/cli:v1", "ImageStreams-quay.io"
	cli := stream(t, "cli", tagged(tag("latest", release)))
	of := func(tags ...fields) []payload.Definition {
		return []payload.Definition{stream(t, "cli", tagged(tags...))}
	}
	one := func(image string) []payload.Definition { return of(tag("latest", image)) }
	pass := []string{"ImageStreams Pass ImageStreamsAccepted"}
	fail := []string{other + " Fail RegistryNotAllowedForImport"}
	unread := []string{"ImageStreams Unknown ImageStreamsUnread"}
	inconclusive := cli
	inconclusive.Cause = "the features of the cluster are unknown"
	deleted := cli
	deleted.Deleted = true
	lost := cli
	lost.Namespace = ""
	insecure := stream(t, "cli", annotated("openshift.io/image.insecureRepository", tag("latest", release)))
	for name, tc := range map[string]struct {
		reason  string
		world   world
		streams []payload.Definition // cli where there is none
		want    []string
		message []string
	}{
		"Unset":    {reason: "without a list every registry is allowed", world: allowing(), want: pass},
		"NoConfig": {reason: "a cluster without the configuration has no list", world: world{}, want: pass},
		"Listed": {
			reason: "the registry is listed", world: allowing("registry.redhat.io", "quay.io"), want: pass,
			message: []string{"1 ImageStream of"},
		},
		"ListedPort": {reason: "a secure registry is at port 443", world: allowing("quay.io:443"), want: pass},
		"OtherPort":  {reason: "an entry with another port does not cover it", world: allowing("quay.io:5000"), want: fail},
		"Insecure":   {reason: "an insecure entry without a port covers port 80 only", world: allowing("quay.io!"), want: fail},
		"InsecureTag": {
			reason: "an insecure tag may be at either port", world: allowing("quay.io!"), streams: []payload.Definition{insecure},
			want: pass,
		},
		"Wildcard": {reason: "entries are patterns", world: allowing("*.example.com", "qu?y.i*:4*"), want: pass},
		"Dot":      {reason: "a dot is no pattern", world: allowing("quay?io.", "quayXio", "quay.io.example.com", "y.io"), want: fail},
		"Regexp":   {reason: "an entry is no regular expression", world: allowing(".+", "(quay", "[a-z]*.io", `\`), want: fail},
		"NotListed": {
			reason: "another registry is listed", world: allowing("registry.redhat.io"), want: fail,
			message: []string{`does not list "quay.io"`, "ImageStream openshift/cli (tag latest)", "rejects"},
		},
		"Colons": {reason: "openshift-apiserver does not start with such an entry", world: allowing("quay.io:443:443", "quay.io:"), want: fail},
		"Internal": {
			reason: "the internal registry is always allowed", world: allowing("registry.redhat.io"), streams: one(internal),
			want: pass,
		},
		"Hub": {
			reason: "an image without a registry is of Docker Hub", world: allowing("docker.io"),
			streams: of(tag("a", "ubuntu"), tag("b", "docker.io/library/ubuntu"), tag("c", "index.docker.io/library/x:1")), want: pass,
		},
		"HubOther": {
			reason: "Docker Hub is not listed", world: allowing("quay.io"), streams: one("library/ubuntu:1"),
			want: []string{"ImageStreams-docker.io Fail RegistryNotAllowedForImport"},
		},
		"Port": {
			reason: "the port of the image counts", world: allowing("registry.example.com:5000"),
			streams: of(tag("a", "registry.example.com:5000/a:1"), tag("b", "registry.example.com:5001/a:1")),
			want:    []string{"ImageStreams-registry.example.com-5001 Fail RegistryNotAllowedForImport"},
		},
		"Kept": {
			reason: "an ImageStream may have another image of a repository of its spec", want: pass,
			world: allowing("registry.redhat.io").having("cli", tagged(tag("old", strings.Replace(release, "aaaa", "bbbb", 1)))),
		},
		"KeptStatus": {
			reason: "or of its status", want: pass,
			world: allowing("registry.redhat.io").having("cli", fields{"status": fields{"tags": []fields{{
				"tag":   "old",
				"items": []fields{{"dockerImageReference": release, "created": nil, "image": "", "generation": 1}},
			}}}}),
		},
		"OtherRepository": {
			reason: "but not of another repository of the registry",
			world:  allowing("registry.redhat.io").having("cli", tagged(tag("old", "quay.io/openshift/origin-cli:v4.0"))), want: fail,
		},
		"CreateOnly": {
			reason: "CVO does not change it", world: allowing("x").having("cli", tagged()),
			streams: []payload.Definition{stream(t, "cli", annotated("release.openshift.io/create-only", tag("latest", release)))}, want: pass,
		},
		"Create": {
			reason: "but it creates it", world: allowing("x"),
			streams: []payload.Definition{stream(t, "cli", annotated("release.openshift.io/create-only", tag("latest", release)))}, want: fail,
		},
		"InsecureHere": {
			reason: "CVO keeps an annotation of the ImageStream",
			world:  allowing("quay.io:80").having("cli", annotated("openshift.io/image.insecureRepository")), want: pass,
		},
		"Deleted": {reason: "CVO deletes it", world: allowing("x"), streams: []payload.Definition{deleted}, want: pass},
		"OtherKinds": {
			reason: "a tag of another ImageStream is not imported", world: allowing("x"),
			streams: of(fields{"name": "a", "from": fields{"kind": "ImageStreamTag", "name": "cli:latest"}}, fields{"name": "b"}), want: pass,
		},
		"Unserved": {reason: "no server compares anything", world: allowing("x").without(unserved), want: pass},
		"Forbidden": {
			reason: "the ImageStream may have the repository already", world: allowing("x").without(streams + "cli"),
			want: unread, message: []string{"openshift/cli: Forbidden"},
		},
		"ForbiddenBeside": {
			reason: "the others are compared", world: allowing("x").without(streams + "cli"),
			streams: []payload.Definition{cli, stream(t, "tools", tagged(tag("latest", release)))}, want: append(slices.Clone(fail), unread...),
		},
		"Unreadable": {reason: "the list may not be read", world: world{images: nil}, want: []string{"ImageStreams Unknown Forbidden"}},
		"Inconclusive": {
			reason: "it is unknown whether CVO applies it", world: allowing("x"), streams: []payload.Definition{inconclusive},
			want: unread, message: []string{"features of the cluster"},
		},
		"NoMatter": {
			reason: "which does not matter without a list", world: allowing(), streams: []payload.Definition{inconclusive},
			want: pass,
		},
		"Malformed": {
			reason: "a name that cannot be parsed may be rejected", world: allowing("x"),
			streams: one("quay.io/\x1b[2J evil\u202e"), want: unread,
		},
		"NoNamespace": {
			reason: "no server has an ImageStream without a namespace", world: allowing("x"), streams: []payload.Definition{lost},
			want: unread,
		},
		"Type": {
			reason: "a manifest of another shape", world: allowing("x"),
			streams: []payload.Definition{stream(t, "cli", fields{"spec": "text"})}, want: unread,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.streams == nil {
				tc.streams = []payload.Definition{cli}
			}
			findings := run(t, tc.world, tc.streams)
			var got []string
			for _, f := range findings {
				got = append(got, fmt.Sprintf("%s %s %s", f.Name, f.Outcome, f.Reason))
				if strings.ContainsAny(f.Message+f.Name, "\x1b\u202e") {
					t.Errorf("%s: control characters in %q", tc.reason, f.Message)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s\nin full: %+v", tc.reason, diff, findings)
			}
			for _, part := range tc.message {
				if !strings.Contains(findings[0].Message, part) {
					t.Errorf("%s: the message %q lacks %q", tc.reason, findings[0].Message, part)
				}
			}
		})
	}
}

func run(t *testing.T, w world, list []payload.Definition) []finding.Finding {
	t.Helper()
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	checks := []check.Check{imagestream.Check(client, list)}
	return collector.Collect(t.Context(), collector.Bind(check.Subject{}, checks), func(collector.Source, []finding.Finding) {}).Findings
}

// What a release states is bounded in messages and findings.
func TestBounded(t *testing.T) {
	t.Parallel()
	var list []payload.Definition
	for i := range 300 {
		var tags []fields
		for n := range 20 {
			tags = append(tags, tag(strings.Repeat("t", 1000)+fmt.Sprint(n), fmt.Sprintf("r%d.example.com/a:1", i%60)))
		}
		list = append(list, stream(t, fmt.Sprint("s", i), tagged(tags...)))
	}
	findings := run(t, allowing("x"), list)
	if len(findings) != 51 || !strings.Contains(findings[50].Message, "10 more findings") {
		t.Errorf("%d findings of 60 registries, the last one %q", len(findings), findings[len(findings)-1].Message)
	}
	if length := len(findings[0].Message); length > 20_000 || !strings.Contains(findings[0].Message, "and 15 more") {
		t.Errorf("a message of %d bytes: %s", length, findings[0].Message)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	evil := stream(t, "cli", nil)
	evil.Namespace = "a/b\n"
	got := imagestream.Check(nil, []payload.Definition{stream(t, "cli", nil), evil}).Reads
	want := []access.Request{
		check.Get("config.openshift.io", "images", "", "cluster"), check.Get("image.openshift.io", "imagestreams", "openshift", "cli"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("only names of objects are requested; -want +got:\n%s", diff)
	}
}
