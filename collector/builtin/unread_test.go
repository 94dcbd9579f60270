package builtin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// damage is what happens to the files of a resource.
type damage struct {
	name string
	// lists is true where only a check that lists the resource misses something.
	lists bool
	do    func(t *testing.T, files []string)
}

func damages() []damage {
	return []damage{
		{name: "Removed", do: func(t *testing.T, files []string) { t.Helper(); each(t, files, os.Remove) }},
		{name: "Halved", lists: true, do: func(t *testing.T, files []string) { t.Helper(); each(t, files[:(len(files)+1)/2], os.Remove) }},
		{name: "Torn", do: func(t *testing.T, files []string) {
			t.Helper()
			each(t, files, func(file string) error {
				content, err := os.ReadFile(file)
				return errors.Join(err, os.WriteFile(file, content[:len(content)/2], 0o600))
			})
		}},
		{name: "Link", do: func(t *testing.T, files []string) {
			t.Helper()
			each(t, files, func(file string) error {
				elsewhere := file + ".elsewhere"
				return errors.Join(os.Rename(file, elsewhere), os.Symlink(elsewhere, file))
			})
		}},
	}
}

func each(t *testing.T, files []string, do func(string) error) {
	t.Helper()
	for _, file := range files {
		if err := do(file); err != nil {
			t.Fatal(err)
		}
	}
}

// counted ends a finding of a check that has a gap.
const counted = ": this counts the objects in the archive."

// TestUnread removes the files of each resource from an archive, or half of them, tears them and replaces
// them by links: no check that reads the resource may pass, and whatever it finds states that it counts a part.
func TestUnread(t *testing.T) {
	server.Create(t, state()...)
	api, err := cluster.Connect(config, "test")
	if err != nil {
		t.Fatal(err)
	}
	none := func(context.Context) (*rest.Config, error) { return nil, errors.New("no monitoring") }
	collection := filepath.Join(t.TempDir(), "collection")
	collect(t, api, none, collection, false)
	for name, archived := range map[string]struct {
		path string
		// counted reports whether the archive has what shows that half of the files of a resource are
		// missing: no index of a must-gather counts objects that have a file each.
		counted func(resource inventory.Resource, lists bool) bool
	}{
		"Collection": {path: collection, counted: func(inventory.Resource, bool) bool { return true }},
		"MustGather": {path: "../../examples/archive", counted: func(of inventory.Resource, lists bool) bool {
			return lists || slices.Contains([]string{"nodes", "machineconfigpools", "customresourcedefinitions"}, of.Name)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			intact := run(t, archived.path, nil)
			for of, files := range filesOf(t, archived.path) {
				for _, harm := range damages() {
					if !slices.ContainsFunc(slices.Collect(maps.Values(intact)), func(e *examination) bool { return e.misses(of, harm) }) {
						continue // no check requests it
					}
					if harm.name == "Halved" && (len(files) < 2 || !archived.counted(of, isList(files[0]))) {
						continue
					}
					t.Run(of.String()+"/"+harm.name, func(t *testing.T) { intact.damaged(t, archived.path, of, harm) })
				}
			}
		})
	}
}

// examined is what the checks do with an archive.
type examined map[string]*examination

// examination is what one check requested, and what it found.
type examination struct {
	check    check.Check
	refused  inventory.Resource
	mutex    sync.Mutex
	requests map[inventory.Resource]bool // true for a list
	findings []finding.Finding
}

// has reports whether the check found the same of the intact archive: then it does not depend on what is damaged.
func (e *examination) has(of finding.Finding) bool {
	return slices.ContainsFunc(e.findings, func(f finding.Finding) bool { return f.Outcome == of.Outcome && f.Message == of.Message })
}

// misses reports whether the check has requested what the damage of a resource may affect.
func (e *examination) misses(of inventory.Resource, harm damage) bool {
	listed, ok := e.requests[of]
	return ok && (listed || !harm.lists)
}

// damaged fails the test where a check passes over an archive in which a resource is damaged that it has
// requested of the intact one.
func (e examined) damaged(t *testing.T, path string, of inventory.Resource, harm damage) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	if err := os.CopyFS(dir, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	harm.do(t, filesOf(t, dir)[of])
	reads := func(c check.Check) bool { return e[c.Name].misses(of, harm) }
	for name, got := range run(t, dir, reads) {
		for _, f := range got.findings {
			switch {
			case f.Outcome == preflight.Pass, f.Outcome == preflight.Skipped && len(got.findings) == 1 && !e[name].has(f):
				t.Errorf("%s is %s: %s", name, f.Outcome, f.Message)
			case f.Outcome != preflight.Skipped && f.Reason != "NotInArchive" && !strings.Contains(f.Message, counted):
				t.Errorf("%s does not state that it counts a part: %s", name, f.Message)
			}
		}
	}
}

// TestForbidden refuses each resource to the checks, as for a user who may not read it: no check that reads it may
// pass, also where it ignores the error.
func TestForbidden(t *testing.T) {
	const path = "../../examples/archive"
	intact := run(t, path, nil)
	requested := map[inventory.Resource]bool{}
	for _, of := range intact {
		for resource := range of.requests {
			requested[resource] = true
		}
	}
	for resource := range requested {
		t.Run(resource.String(), func(t *testing.T) {
			reads := func(c check.Check) bool { _, ok := intact[c.Name].requests[resource]; return ok }
			for name, got := range runRefused(t, path, reads, resource) {
				for _, f := range got.findings {
					if f.Outcome == preflight.Pass || f.Outcome == preflight.Skipped && !intact[name].has(f) {
						t.Errorf("%s is %s: %s", name, f.Outcome, f.Message)
					}
				}
			}
		})
	}
}

// run runs each of the checks alone on the archive.
func run(t *testing.T, path string, only func(check.Check) bool) examined {
	t.Helper()
	return runRefused(t, path, only, inventory.Resource{})
}

// runRefused is run where the user may not read a resource; the zero value is none.
func runRefused(t *testing.T, path string, only func(check.Check) bool, refused inventory.Resource) examined {
	t.Helper()
	all := examined{}
	opened, err := archive.Open(t.Context(), path)
	if err != nil {
		if only != nil && strings.Contains(err.Error(), "contains a ClusterVersion") { // then nothing is judged
			return nil
		}
		t.Fatal(err)
	}
	for _, c := range builtin.Checks(scene.Judgement{Monitoring: monitoring.New(func(context.Context) (*rest.Config, error) {
		return nil,
			errors.New("no monitoring")
	}, monitoring.DefaultTimeout)}) {
		if only != nil && !only(c) {
			continue
		}
		of := &examination{check: c, refused: refused, requests: map[inventory.Resource]bool{}}
		config := opened.Config()
		config.Wrap(of.record)
		api, err := cluster.ConnectAt(config, "test", opened.About().Time)
		if err != nil {
			t.Fatal(err)
		}
		subject := check.Subject{Cluster: snapshot.Of(api), Update: checktest.MinorUpdate(t, "4.18.3", "4.19.1"), Now: opened.About().Time}
		of.findings = collector.Collect(t.Context(), collector.Bind(subject, []check.Check{c}),
			func(collector.Source, []finding.Finding) {}).Findings
		all[c.Name] = of
	}
	return all
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// record notes which resources are requested.
func (e *examination) record(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
		var of inventory.Resource
		switch {
		case path[0] == "api" && len(path) > 2:
			path = path[2:]
		case path[0] == "apis" && len(path) > 3:
			of.Group, path = path[1], path[3:]
		default:
			return next.RoundTrip(request)
		}
		if path[0] == "namespaces" && len(path) > 2 {
			path = path[2:]
		}
		of.Name = path[0]
		e.mutex.Lock()
		e.requests[of] = e.requests[of] || len(path) == 1
		e.mutex.Unlock()
		if of == e.refused {
			return forbidden(request)
		}
		return next.RoundTrip(request)
	})
}

// forbidden is the response of an API server to a user without the permission.
func forbidden(request *http.Request) (*http.Response, error) {
	status := apierrors.NewForbidden(schema.GroupResource{Resource: "refused"}, "", errors.New("the user may not read it")).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	text, err := json.Marshal(status)
	return &http.Response{
		StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
		Request: request,
	}, err
}

// filesOf are the files of an archive by their resource, in order.
func filesOf(t *testing.T, dir string) map[inventory.Resource][]string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := map[inventory.Resource][]string{}
	for _, root := range layout.Roots(names) {
		for _, name := range names {
			below, ok := root.Below(name)
			if !ok {
				continue
			}
			if place, ok := root.Place(below); ok && layout.Wanted(name) {
				of := inventory.Resource{Group: place.Group, Name: place.Resource}
				found[of] = append(found[of], filepath.Join(dir, name))
			}
		}
	}
	return found
}

// isList reports whether a file of the layout has a list.
func isList(file string) bool {
	content, err := os.ReadFile(file)
	return err == nil && strings.Contains(string(content), "\nkind: ") && strings.Contains(string(content), "items:")
}
