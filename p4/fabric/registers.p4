// State that the data plane keeps for itself, where more than one control uses it.
//
// The controller neither reads nor writes any of it: parameters are table entries. Times are in
// microseconds since the switch started. A register that ingress reads and egress writes (or the other
// way round) has to be declared here, at top level.

#ifndef FABRIC_REGISTERS_P4
#define FABRIC_REGISTERS_P4

typedef bit<48> micros_t;

// Liveness, by port. A cell: [47:0] the neighbour is alive until then, 0 when it was never heard; [48] it
// does not hear us; [49] what we send it gets lost.
register<bit<64>>(PORTS) neighbour_state;
#define ALIVE_UNTIL 47:0
#define IS_DEAF     48:48
#define IS_GRAY     49:49

// Own hellos go out until then at least. Once they do not, neighbours are not judged either: when the
// generator stops everywhere at once, nobody takes anybody for dead.
register<micros_t>(1) generator_until;

// Ports whose neighbour was found dead, a bit each, 256 to a cell; and by LA domain (its low 9 bits << 1),
// ports behind which its probes stopped coming.
typedef bit<256> port_set_t;
register<port_set_t>(2)              dead_ports;
register<port_set_t>(2 * LA_DOMAINS) lost_paths;
#define SET_INDEX(port)         ((bit<32>)((port)[8:8]))
#define LOST_INDEX(la, port)    ((bit<32>)((la)[8:0] ++ (port)[8:8]))
#define SET_OF(port)            (256w1 << (port)[7:0])

// Packets put on and taken off each link, and whether the far end's get lost.
register<bit<32>>(PORTS) sent_count;
register<bit<32>>(PORTS) received_count;
register<bit<1>>(PORTS)  lossy;

// Packets waiting, by port << 3 | queue: set from egress, counted up by ingress.
register<bit<32>>(PORT_QUEUES) queue_load;

// How busy a port was of late. A cell: [63:32] time of the last packet, [31:26] log2 of the time it takes
// to forget, [25:0] share of its capacity, 65536 is all.
register<bit<64>>(PORTS) port_use;
#define USE_TIME   63:32
#define USE_WINDOW 31:26
#define USE_SHARE  25:0

// Congestion of the path beyond a port, by LA domain and port. A cell: [63:40] LA domain, [39:32] bands,
// [31:0] time.
register<bit<64>>(LA_PATHS) path_state;
#define PATH_LA   63:40
#define PATH_BAND 39:32
#define PATH_TIME 31:0
#define PATH_INDEX(la, port) ((bit<32>)((la)[8:0] ++ (port)[6:0]))

#endif
