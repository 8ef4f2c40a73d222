package loadgen

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"krig/internal/agent"
)

// A Caller is who asked for the load: the worker's side of the talk that the
// message kinds describe.
type Caller interface {
	Emit(kind string, body any) error
	Receive(ctx context.Context) (agent.Message, error)
}

// load is one run of a [Spec].
type load struct {
	spec      *Spec
	clock     clock
	sleeper   func(clock) sleeper
	dial      []kgo.Opt // how clients connect; none is the network
	window    window
	closing   atomic.Bool // what is not acknowledged now is censored
	errors    errorList
	producers []*producer
	shards    []*shard
	consumers []*consumer
	ahead     []int64 // by worker: ns that its clock is ahead of ours
	about     AssignedBody
}

// Run carries a worker's share of a load, from connecting to the last message.
// When ctx ends, it stops early and still sends what it has. The error says what
// kept it from loading; records that the cluster refused are counted, not errors.
func Run(ctx context.Context, spec *Spec, caller Caller) error {
	return run(ctx, spec, caller, fineSleeper)
}

func run(ctx context.Context, spec *Spec, caller Caller, sleep func(clock) sleeper, dial ...kgo.Opt) error {
	if err := spec.check(); err != nil {
		return err
	}
	l := &load{
		spec: spec, clock: newClock(), sleeper: sleep, dial: dial,
		ahead: make([]int64, max(spec.Workers, spec.Worker+1)),
	}
	defer l.close()
	if err := l.connect(ctx); err != nil {
		return err
	}
	defer l.relaxCollector()()
	reading, stopReading := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stopReading()
	l.listen(caller)
	if spec.ProducersInAll > 0 {
		l.consume(reading, &readers)
	}
	start, err := l.ready(ctx, caller)
	if err != nil {
		return err
	}
	l.open(start)
	if spec.ProducersInAll == 0 {
		l.consume(reading, &readers) // what is there is the load: nobody read before its start
	}
	return l.measure(ctx, caller)
}

// relaxCollector lets garbage grow to several times what lives while that is
// little: collections would take processor time from the rig, and delay the schedule. The result undoes it.
func (l *load) relaxCollector() func() {
	var most int64
	for _, p := range l.producers {
		most += p.limit
	}
	most += int64(len(l.consumers)) * 16 << 20
	if most > 192<<20 {
		return func() {}
	}
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}

// connect makes every client and one connection each.
func (l *load) connect(ctx context.Context) error {
	ps, err := ProducerSettings(l.spec.ProducerSettings, l.spec.RecordSize)
	if err != nil {
		return fmt.Errorf("producer settings: %w", err)
	}
	cs, err := ConsumerSettings(l.spec.ConsumerSettings)
	if err != nil {
		return fmt.Errorf("consumer settings: %w", err)
	}
	for range min(len(l.spec.Producers), 16) {
		l.shards = append(l.shards, newShard(l.spec.Rate > 0))
	}
	for i, p := range l.spec.Producers {
		client, err := l.client(ctx, ps.Opts)
		if err != nil {
			return fmt.Errorf("producer %d: %w", p.Index, err)
		}
		l.producers = append(l.producers, newProducer(l, p, client, ps.buffer, l.shards[i%len(l.shards)]))
	}
	for _, c := range l.spec.Consumers {
		if err := l.addConsumer(ctx, c, cs); err != nil {
			return fmt.Errorf("consumer %d: %w", c.Index, err)
		}
	}
	if len(l.producers) > 0 {
		l.tell("producer.", ps)
	}
	if len(l.consumers) > 0 {
		l.tell("consumer.", cs)
	}
	return nil
}

// tell keeps what the caller shall know of settings.
func (l *load) tell(of string, s *Settings) {
	l.about.Notes = append(l.about.Notes, s.Notes...)
	for _, n := range s.NotApplied {
		n.Key = of + n.Key
		l.about.NotApplied = append(l.about.NotApplied, n)
	}
}

func (l *load) client(ctx context.Context, opts []kgo.Opt) (*kgo.Client, error) {
	all := append([]kgo.Opt{kgo.SeedBrokers(l.spec.Brokers...), kgo.MetadataMinAge(250 * time.Millisecond)}, l.dial...)
	client, err := kgo.NewClient(append(all, opts...)...)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, fmt.Errorf("connecting to %v: %w", l.spec.Brokers, err)
	}
	return client, nil
}

func (l *load) addConsumer(ctx context.Context, spec Consumer, s *Settings) error {
	c := &consumer{
		spec: spec, load: l, most: s.poll, assigned: make(chan struct{}),
		endToEnd: make([]atomic.Pointer[recorder], len(l.ahead)),
	}
	var once sync.Once
	client, err := l.client(ctx, append([]kgo.Opt{
		kgo.ConsumerGroup(spec.Group),
		kgo.ConsumeTopics(spec.Topics...),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			once.Do(func() { close(c.assigned) })
		}),
	}, s.Opts...))
	if err != nil {
		return err
	}
	c.client = client
	l.consumers = append(l.consumers, c)
	return nil
}

// listen has the consumers tell of probes.
func (l *load) listen(caller Caller) {
	for _, c := range l.consumers {
		c.probes = func(of []int) { _ = caller.Emit(Read, ProbeBody{Producers: of}) }
	}
}

// consume starts the consumers.
func (l *load) consume(ctx context.Context, wg *sync.WaitGroup) {
	for _, c := range l.consumers {
		wg.Go(func() { c.run(ctx) })
	}
}

// ready says that all is connected, sends probes as told, and returns the start.
func (l *load) ready(ctx context.Context, caller Caller) (StartBody, error) {
	for _, c := range l.consumers {
		select {
		case <-c.assigned:
		case <-ctx.Done():
			return StartBody{}, fmt.Errorf("consumer %d waited for partitions: %w", c.spec.Index, ctx.Err())
		}
	}
	if err := caller.Emit(Assigned, l.about); err != nil {
		return StartBody{}, err
	}
	for {
		m, err := caller.Receive(ctx)
		if err != nil {
			return StartBody{}, fmt.Errorf("waiting for the start: %w", err)
		}
		switch m.Kind {
		case Probe:
			err = l.probe(ctx, caller, m)
		case Start:
			var start StartBody
			return start, unmarshal(m, &start)
		default:
			err = fmt.Errorf("before the start: unexpected message %q", m.Kind)
		}
		if err != nil {
			return StartBody{}, err
		}
	}
}

// probe has one uncounted record of each producer acknowledged.
func (l *load) probe(ctx context.Context, caller Caller, m agent.Message) error {
	var ask ProbeBody
	if err := unmarshal(m, &ask); err != nil {
		return err
	}
	wanted := map[int]bool{}
	for _, i := range ask.Producers {
		wanted[i] = true
	}
	var sent []int
	for _, p := range l.producers {
		if len(wanted) > 0 && !wanted[p.spec.Index] {
			continue
		}
		if err := p.probe(ctx); err != nil {
			return fmt.Errorf("the first record of producer %d: %w", p.spec.Index, err)
		}
		sent = append(sent, p.spec.Index)
	}
	return caller.Emit(Probed, ProbeBody{Producers: sent})
}

func (p *producer) probe(ctx context.Context) error {
	value := make([]byte, p.load.spec.RecordSize)
	putHeader(value, p.load.spec.Worker, int64(p.spec.Index))
	return p.client.ProduceSync(ctx, &kgo.Record{Topic: p.spec.Topics[0], Value: value}).FirstErr()
}

// measure runs the load proper: from the start to the last message.
func (l *load) measure(ctx context.Context, caller Caller) error {
	before := usage()
	ticks := newTicker(l, caller)
	ticking, stopTicking := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { ticks.run(ticking) })

	l.produce(ctx)
	l.await(ctx)
	after := usage()
	err := caller.Emit(Produced, l.counters())
	for err == nil && ctx.Err() == nil {
		var m agent.Message
		if m, err = caller.Receive(ctx); m.Kind == Stop {
			break
		}
	}
	stopTicking()
	wg.Wait()
	l.closing.Store(true)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err := ticks.last(); err != nil {
		return err
	}
	return caller.Emit(End, l.summary(before, after))
}

// open fixes the window and the schedule, and lets consumers count.
func (l *load) open(start StartBody) {
	for worker, ns := range start.Ahead {
		if worker >= 0 && worker < len(l.ahead) {
			l.ahead[worker] = ns
		}
	}
	l.window.start = l.clock.at(start.At)
	l.window.begin = l.window.start + int64(l.spec.Warmup)
	l.window.end.Store(far)
	if !l.spec.ByRecords {
		l.window.end.Store(l.window.begin + int64(l.spec.Window))
	}
	if l.spec.Rate > 0 {
		for _, p := range l.producers {
			p.schedule()
		}
	}
	for _, c := range l.consumers {
		c.started.Store(true)
	}
}

// produce sends everything, and returns when the senders are done.
func (l *load) produce(ctx context.Context) {
	end := l.window.end.Load()
	inTime, cancel := context.WithCancel(ctx)
	defer cancel()
	if end != far {
		defer time.AfterFunc(time.Duration(end-l.clock.now()), cancel).Stop()
	}
	if wait := l.window.start - l.clock.now(); wait > 0 {
		select {
		case <-time.After(time.Duration(wait)):
		case <-ctx.Done():
		}
	}
	var wg sync.WaitGroup
	if l.spec.Rate == 0 {
		for _, p := range l.producers {
			wg.Go(func() { p.flood(inTime) })
		}
	} else {
		l.pace(ctx, &wg, end)
	}
	wg.Wait()
	if end != far {
		<-inTime.Done()
	}
}

// pace deals the producers to as few pacers as the rate allows. A pacer asleep
// holds one of Go's processors for a moment; with as many more of them the clients'
// goroutines never wait for it, nor it for them.
func (l *load) pace(ctx context.Context, wg *sync.WaitGroup, end int64) {
	mine := l.spec.Rate * float64(len(l.producers)) / float64(l.spec.ProducersInAll)
	n := min(len(l.producers), runtime.NumCPU(), 1+int(mine/pacerRate))
	procs := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(procs + n)
	defer func() { wg.Wait(); runtime.GOMAXPROCS(procs) }()
	for i := range n {
		p := &pacer{clock: l.clock}
		for j := i; j < len(l.producers); j += n {
			p.producers = append(p.producers, l.producers[j])
		}
		wg.Go(func() {
			p.sleep = l.sleeper(l.clock)
			p.run(ctx, end)
		})
	}
}

// await waits for outstanding acknowledgements, within the limit, and closes a
// window that ends by records.
func (l *load) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.spec.Await)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range l.producers {
		wg.Go(func() { _ = p.client.Flush(ctx) })
	}
	wg.Wait()
	if !l.spec.ByRecords || len(l.producers) == 0 {
		return
	}
	last := l.window.begin
	for _, p := range l.producers {
		last = max(last, p.count.lastAck.Load())
	}
	l.window.end.Store(last + 1)
}

// close ends all clients; what is not acknowledged by then is censored.
func (l *load) close() {
	l.closing.Store(true)
	var wg sync.WaitGroup
	for _, p := range l.producers {
		wg.Go(p.client.Close)
	}
	for _, c := range l.consumers {
		wg.Go(c.client.Close)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second): // a broker that does not answer: the agent's end closes them
	}
}
