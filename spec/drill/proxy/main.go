// A proxy in front of the API server of spec/support/kube/cluster.sh, or the collector of spec/support/otel/collector.sh.
// It makes requests fail in ways that the server itself cannot be made to. It shows the server's certificate, and speaks
// HTTP/2 and HTTP/1.1 on both sides.
//
//	proxy FOLDER SEED URL
//
// FOLDER is that of the cluster or the collector, URL is the server. The proxy prints the two loopback ports that it listens at: one for clients (TLS),
// and one for commands. The command
//
//	GET /fault?kind=reset&share=0.5&delay=30s
//
// sets a fault, which is then done to a share of the requests, which a random generator with the seed SEED picks. The
// kinds are those of faults.go, and "idle", which closes connections when nothing is under way on them. Without a kind
// there is no fault. GET /met answers to how many requests the fault was done. The proxy ends when its standard input
// does.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

type proxy struct {
	server *httputil.ReverseProxy
	client *http.Client
	url    *url.URL // of the server
	folder string
	// The server's certificate, and one of an authority that the clients do not know.
	own, strange tls.Certificate

	lock   sync.Mutex
	random *rand.Rand
	kind   string
	share  float64
	delay  time.Duration
	met    int
	known  map[string]bool // the events that were posted, as posted() names them
	idle   map[net.Conn]bool
}

func (p *proxy) below(n int) int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.random.Intn(n)
}

// The fault to do to a request, or nil.
func (p *proxy) pick(r *http.Request) (fault func(*exchange), delay time.Duration) {
	event := posted(r)
	p.lock.Lock()
	defer p.lock.Unlock()
	first := event != "" && !p.known[event]
	p.known[event] = true
	if p.kind == "" || p.random.Float64() >= p.share {
		return nil, 0
	}
	fault = faultFor(p.kind, r.Method, first, p.random)
	if fault != nil {
		p.met++
	}
	return fault, p.delay
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault, delay := p.pick(r)
	if fault == nil {
		p.server.ServeHTTP(w, r)
		return
	}
	remove := func() error { return p.remove(r) }
	fault(&exchange{w: w, r: r, server: p.server, delay: delay, below: p.below, remove: remove})
}

// The event of a POST: its path and its name without the time; of other requests "". The body can be read again.
func posted(r *http.Request) string {
	var event struct{ Metadata struct{ Name string } }
	if r.Method != http.MethodPost {
		return ""
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil || json.Unmarshal(body, &event) != nil {
		return ""
	}
	object, _, _ := strings.Cut(event.Metadata.Name, ".")
	return r.URL.Path + "/" + object
}

// Deletes the event of a PATCH in an API server, with the admin's token, as the client may not delete events.
func (p *proxy) remove(r *http.Request) error {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodDelete, p.url.String()+r.URL.Path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(read(p.folder, "admin.token"))))
	answer, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
		return fmt.Errorf("DELETE: %s", answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// Closes a connection that is idle after a delay, perhaps just when the next request comes; in turns with and without a
// goodbye.
func (p *proxy) onState(c net.Conn, state http.ConnState) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.idle, c)
	if state != http.StateIdle || p.kind != "idle" {
		return
	}
	p.idle[c] = true
	time.AfterFunc(p.delay, func() { p.closeIdle(c) })
}

func (p *proxy) closeIdle(c net.Conn) {
	p.lock.Lock()
	idle := p.idle[c]
	if idle {
		p.met++
	}
	goodbye := p.met%2 == 0
	p.lock.Unlock()
	if idle && goodbye {
		_ = c.Close()
	} else if idle {
		resetConnection(c)
	}
}

func (p *proxy) tellMet(w http.ResponseWriter, _ *http.Request) {
	p.lock.Lock()
	defer p.lock.Unlock()
	fmt.Fprintln(w, p.met)
}

func (p *proxy) setFault(w http.ResponseWriter, r *http.Request) {
	kind := r.FormValue("kind")
	share, err := strconv.ParseFloat(r.FormValue("share"), 64)
	delay, wrong := time.ParseDuration(r.FormValue("delay"))
	if kind != "" && (err != nil || wrong != nil || !known(kind)) {
		http.Error(w, "kind, share or delay", http.StatusBadRequest)
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.kind, p.share, p.delay, p.met = kind, share, delay, 0
	admission.reset()
}

func (p *proxy) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.kind == "stranger" {
		return &p.strange, nil
	}
	return &p.own, nil
}

func pair(folder, name string) tls.Certificate {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key"))
	if err != nil {
		log.Fatal(err)
	}
	return certificate
}

func read(path ...string) []byte {
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		log.Fatal(err)
	}
	return content
}

func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func port(l net.Listener) int {
	return l.Addr().(*net.TCPAddr).Port
}

func newProxy(folder string, seed int64, server *url.URL) *proxy {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(read(folder, "server-ca.crt"))
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: authorities},
		ForceAttemptHTTP2: true,
	}
	p := &proxy{
		server: httputil.NewSingleHostReverseProxy(server),
		client: &http.Client{Transport: transport},
		url:    server,
		folder: folder,
		random: rand.New(rand.NewSource(seed)),
		known:  map[string]bool{},
		idle:   map[net.Conn]bool{},
	}
	p.own = pair(folder, "pki/server")
	p.strange = pair(folder, "client")
	p.server.Transport = transport
	p.server.ErrorLog = log.New(io.Discard, "", 0)
	return p
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: proxy FOLDER SEED URL")
	}
	seed, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	server, err := url.Parse(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	p := newProxy(os.Args[1], seed, server)
	clients, controls := listen(), listen()
	front := &http.Server{
		Handler:     p,
		TLSConfig:   &tls.Config{GetCertificate: p.certificate},
		ConnContext: withConnection,
		ConnState:   p.onState,
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	go func() { log.Fatal(front.ServeTLS(clients, "", "")) }()
	http.HandleFunc("/fault", p.setFault)
	http.HandleFunc("/met", p.tellMet)
	go func() { log.Fatal(http.Serve(controls, nil)) }()
	fmt.Println(port(clients), port(controls))
	_, _ = io.Copy(io.Discard, os.Stdin)
}
