package balance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weightedrollout/weightedrollout/internal/weights/balance"
)

// A plant is backends under load, as a Group meets them: the weights divide the demand,
// the load makes the response times, and these are seen some windows late.
type plant struct {
	// demand and capacity are in requests per second.
	demand   float64
	capacity []float64
	// service is the response time without load, in seconds.
	service float64
	// delay is how many windows late a response time is seen.
	delay int
	// noise is the standard deviation of the measured response time's logarithm.
	noise float64
	// ripple is a periodic disturbance, as a part of the response time, and period its
	// length in windows.
	ripple, period float64
}

// responseTime is that of a queue, service / (1 - utilisation). From a utilisation of
// 0.95 on, where a queue would have no limit, it grows in a straight, steep line.
func (p plant) responseTime(i int, share float64) float64 {
	utilisation := p.demand * share / p.capacity[i]
	if utilisation > 0.95 {
		return p.service * (20 + 400*(utilisation-0.95))
	}
	return p.service / (1 - utilisation)
}

const (
	windows = 400
	// tail is how many of the last windows are judged: what came before may settle.
	tail = 200
)

// A course is what the weights did in the tail.
type course struct {
	// turns counts the changes of direction of all weights, and writes the changes.
	turns, writes int
	// swing is the largest difference between two shares of a backend.
	swing float64
	// times are the last true response times, shares the last shares.
	times, shares []float64
}

// run lets a group follow a plant. The noise is seeded, so that a run is the same each
// time.
func (p plant) run(t *testing.T, s balance.Settings, configured []int64, seed uint64) course {
	t.Helper()
	g := newGroup(t, s, configured...)
	random := rand.New(rand.NewPCG(seed, 1))
	n := len(configured)
	var seen [][]float64
	var c course
	low, high, direction := make([]float64, n), make([]float64, n), make([]float64, n)
	before := g.Weights()
	for window := range windows {
		present := g.Weights()
		sum := 0.0
		for _, w := range present {
			sum += w
		}
		c.times, c.shares = make([]float64, n), make([]float64, n)
		measured := make([]float64, n)
		for i, w := range present {
			c.shares[i] = w / sum
			c.times[i] = p.responseTime(i, c.shares[i])
			measured[i] = c.times[i] * math.Exp(p.noise*random.NormFloat64())
			if p.ripple > 0 {
				measured[i] *= 1 + p.ripple*math.Sin(2*math.Pi*float64(window)/p.period)
			}
			if window < windows-tail {
				continue
			}
			if low[i] == 0 || c.shares[i] < low[i] {
				low[i] = c.shares[i]
			}
			high[i] = max(high[i], c.shares[i])
			if change := w - before[i]; change != 0 {
				c.writes++
				if change*direction[i] < 0 {
					c.turns++
				}
				direction[i] = change
			}
		}
		before = present
		seen = append(seen, measured)
		if window >= p.delay {
			if _, err := g.Observe(seen[window-p.delay]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range low {
		c.swing = max(c.swing, high[i]-low[i])
	}
	return c
}

// Unequal backends with equal weights at the start, seen late: the weights come to rest,
// where no backend is slower than what the dead band lets pass.
func TestConverges(t *testing.T) {
	for _, tc := range []struct {
		name       string
		plant      plant
		configured []int64
	}{
		{"equal", plant{demand: 100, capacity: []float64{100, 100}, service: 0.025}, []int64{100, 100}},
		{"one is weaker", plant{demand: 75, capacity: []float64{100, 60}, service: 0.025}, []int64{100, 100}},
		{"one is weaker, seen a window late", plant{demand: 75, capacity: []float64{100, 60}, service: 0.025, delay: 1}, []int64{100, 100}},
		{"one is weaker, seen two late", plant{demand: 75, capacity: []float64{100, 60}, service: 0.025, delay: 2}, []int64{100, 100}},
		{"one is overloaded at first", plant{demand: 100, capacity: []float64{100, 100, 36}, service: 0.025, delay: 2}, []int64{100, 100, 100}},
		{"seen four late", plant{demand: 100, capacity: []float64{100, 100, 36}, service: 0.025, delay: 4}, []int64{100, 100, 100}},
		{"the weights are the wrong way round", plant{demand: 100, capacity: []float64{150, 50}, service: 0.02, delay: 1}, []int64{50, 100}},
		{"five", plant{demand: 200, capacity: []float64{100, 90, 80, 70, 60}, service: 0.02, delay: 2}, []int64{60, 70, 80, 90, 100}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := tc.plant.run(t, balance.DefaultSettings(), tc.configured, 1)
			if c.writes != 0 || c.turns != 0 || c.swing != 0 {
				t.Errorf("%d writes, %d turns, swing %.3f: the weights do not rest", c.writes, c.turns, c.swing)
			}
			// A change under 2 % at a gain of 0.2 is a tenth of the baseline.
			for i, rt := range c.times {
				if rt > 0.055+1e-9 {
					t.Errorf("backend %d rests at %.4f s with a share of %.3f", i, rt, c.shares[i])
				}
			}
		})
	}
}

// Smoothing, dead band and step cap: for each there is a plant on which leaving out just
// that one makes the weights breathe, while all three together let them rest.
func TestEachOfTheThreeIsNeeded(t *testing.T) {
	for _, tc := range []struct {
		name       string
		plant      plant
		settings   balance.Settings
		configured []int64
		leaveOut   func(*balance.Settings)
		// With all three there are at most so many turns and writes in the tail, and a swing
		// of at most so much; without the one at least so many turns and writes, and at
		// least so much swing.
		rest, breathe course
	}{
		{
			// The response times are measured with an error of 12 %, and a window's error says
			// nothing about the next. Followed as they are, the weights follow the errors, up
			// and down. The average has a third of the error, which the dead band covers.
			name:       "smoothing, under measurement noise",
			plant:      plant{demand: 75, capacity: []float64{100, 60}, service: 0.025, delay: 1, noise: 0.12},
			settings:   balance.DefaultSettings(),
			configured: []int64{100, 100},
			leaveOut:   func(s *balance.Settings) { s.Alpha = 1 },
			rest:       course{turns: 4, writes: 20, swing: 0.03},
			breathe:    course{turns: 40, writes: 80, swing: 0.045},
		},
		{
			// The response times rise and fall by 6 % with a period of half an hour or so, as
			// with a job that runs now and then. That is too slow for the average to take out,
			// and far under what a step would cap. Without a dead band each window brings a
			// small write, and the weights go up and down with the disturbance for ever.
			name:       "dead band, under a small periodic disturbance",
			plant:      plant{demand: 75, capacity: []float64{100, 60}, service: 0.025, delay: 1, ripple: 0.06, period: 30},
			settings:   balance.DefaultSettings(),
			configured: []int64{100, 100},
			leaveOut:   func(s *balance.Settings) { s.DeadBand = 0 },
			rest:       course{},
			breathe:    course{turns: 8, writes: 200, swing: 0.02},
		},
		{
			// A high gain, response times that are seen three windows late, and a first
			// backend that is overloaded by the configured weights. Without a cap it is thrown
			// down to its floor in one go. Its load falls on the other one, which is
			// overloaded by that and thrown down in turn, before anything is seen of the
			// first one's relief: a saw-tooth. No average and no dead band helps against that,
			// since the changes are large and real. In steps of a fifth the load moves slowly
			// enough to be seen on its way, and comes to rest between the two.
			name:  "step cap, under a high gain and delay",
			plant: plant{demand: 100, capacity: []float64{100, 100}, service: 0.02, delay: 3},
			settings: with(func(s *balance.Settings) {
				s.Gain, s.DeadBand = 0.5, 0.05
			}),
			configured: []int64{100, 30},
			leaveOut:   func(s *balance.Settings) { s.Step = 1 },
			rest:       course{},
			breathe:    course{turns: 20, writes: 200, swing: 0.5},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			without := tc.settings
			tc.leaveOut(&without)
			for seed := range uint64(5) {
				c := tc.plant.run(t, tc.settings, tc.configured, seed)
				if c.turns > tc.rest.turns || c.writes > tc.rest.writes || c.swing > tc.rest.swing {
					t.Errorf("all three, seed %d: %d turns, %d writes, swing %.3f: the weights do not rest", seed, c.turns, c.writes, c.swing)
				}
				c = tc.plant.run(t, without, tc.configured, seed)
				if c.turns < tc.breathe.turns || c.writes < tc.breathe.writes || c.swing < tc.breathe.swing {
					t.Errorf("without, seed %d: %d turns, %d writes, swing %.3f: the weights do not breathe", seed, c.turns, c.writes, c.swing)
				}
			}
		})
	}
}

// Most plants are not made by hand. Of 300 that are drawn, of 2 to 4 unequal backends
// with a use of 20 to 60 %, seen up to two windows late, the weights come to rest on all.
// Three are allowed for another machine's rounding.
func TestDrawnPlantsComeToRest(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const plants = 300
	rested := 0
	for range plants {
		n := 2 + random.IntN(3)
		p := plant{demand: 100, service: 0.01 + 0.015*random.Float64(), delay: random.IntN(3)}
		configured := make([]int64, n)
		var sum float64
		for i := range configured {
			configured[i] = 50 + random.Int64N(50)
			p.capacity = append(p.capacity, 50+50*random.Float64())
			sum += p.capacity[i]
		}
		utilisation := 0.2 + 0.4*random.Float64()
		for i := range p.capacity {
			p.capacity[i] *= p.demand / utilisation / sum
		}
		if c := p.run(t, balance.DefaultSettings(), configured, 1); c.turns <= 2 && c.swing < 0.03 {
			rested++
		}
	}
	if rested < plants-3 {
		t.Errorf("the weights rest on %d of %d plants", rested, plants)
	}
}
